import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../format";

export interface Column<Row> {
	readonly key: string;
	readonly title: string;
	/** Explains the title. */
	readonly about?: string;
	readonly value: (row: Row) => number | string;
	/** How the value is shown; by default as it is. */
	readonly show?: (row: Row) => ComponentChildren;
	/** Numbers are aligned at the right, and sorted with the largest first. */
	readonly number?: boolean;
	/** Hidden on narrow screens. */
	readonly minor?: boolean;
	/** Rows cannot be sorted by it. */
	readonly unsorted?: boolean;
}

interface Props<Row> {
	caption: string;
	columns: readonly Column<Row>[];
	rows: readonly Row[];
	rowKey: (row: Row) => string | number;
	sort: string;
	onSort: (key: string) => void;
	/** The rows are sorted already: they are a page of a list. */
	page?: boolean;
	/** Rows that are shown at first. */
	first?: number;
	/** What is shown below a row when it is opened; rows cannot be opened without it. */
	detail?: (row: Row) => ComponentChildren;
}

/** `-key` is ascending for numbers and descending for texts: against the usual order. */
function ordered<Row>(columns: readonly Column<Row>[], rows: readonly Row[], sort: string): Row[] {
	const column = columns.find((c) => c.key === sort.replace(/^-/, ""));
	const sign = sort.startsWith("-") ? -1 : 1;

	if (!column) return [...rows];
	return [...rows].sort((x, y) => {
		const a = column.value(x);
		const b = column.value(y);

		if (typeof a === "number" && typeof b === "number") return sign * (b - a);
		return sign * String(a).localeCompare(String(b));
	});
}

function ariaSort<Row>(c: Column<Row>, sort: string): "ascending" | "descending" | "none" {
	if (sort.replace(/^-/, "") !== c.key) return "none";
	return sort.startsWith("-") !== Boolean(c.number) ? "descending" : "ascending";
}

function cellClass<Row>(c: Column<Row>): string {
	return `${c.number ? "number" : "text"}${c.minor ? " minor" : ""}`;
}

interface HeadProps<Row> {
	column: Column<Row>;
	sort: string;
	onSort: (key: string) => void;
}

function Head<Row>({ column: c, sort, onSort }: HeadProps<Row>) {
	if (c.unsorted)
		return (
			<th scope="col" class={cellClass(c)} title={c.about}>
				{c.title}
			</th>
		);
	return (
		<th scope="col" class={cellClass(c)} aria-sort={ariaSort(c, sort)}>
			<button type="button" title={c.about} onClick={() => onSort(sort === c.key ? `-${c.key}` : c.key)}>
				{c.title}
				<span class="arrow" aria-hidden="true">
					{{ ascending: "▴", descending: "▾", none: "" }[ariaSort(c, sort)]}
				</span>
			</button>
		</th>
	);
}

/** A table whose columns sort it, and whose rows can open. */
export function Table<Row>(p: Props<Row>) {
	const [more, setMore] = useState(1);
	const [open, setOpen] = useState<ReadonlySet<string | number>>(new Set());
	const rows = useMemo(
		() => (p.page ? p.rows : ordered(p.columns, p.rows, p.sort)),
		[p.page, p.columns, p.rows, p.sort],
	);
	const first = p.first ?? 50;
	const shown = rows.slice(0, first * more);
	const toggle = (key: string | number) => {
		const next = new Set(open);

		if (!next.delete(key)) next.add(key);
		setOpen(next);
	};

	return (
		<>
			<div class="scroll" role="region" aria-label={p.caption} tabIndex={0}>
				<table>
					<caption class="unseen">{p.caption}</caption>
					<thead>
						<tr>
							{p.detail && (
								<th scope="col" class="opener">
									<span class="unseen">Details</span>
								</th>
							)}
							{p.columns.map((c) => (
								<Head key={c.key} column={c} sort={p.sort} onSort={p.onSort} />
							))}
						</tr>
					</thead>
					<tbody>
						{shown.map((row) => {
							const key = p.rowKey(row);

							return [
								<tr key={key}>
									{p.detail && (
										<td class="opener">
											<button type="button" aria-expanded={open.has(key)} onClick={() => toggle(key)}>
												<span aria-hidden="true">{open.has(key) ? "▾" : "▸"}</span>
												<span class="unseen">Details</span>
											</button>
										</td>
									)}
									{p.columns.map((c) => (
										<td key={c.key} class={cellClass(c)} data-value={c.value(row)}>
											{c.show ? c.show(row) : c.value(row)}
										</td>
									))}
								</tr>,
								p.detail && open.has(key) && (
									<tr key={`${key} detail`} class="detail">
										<td colSpan={p.columns.length + 1}>{p.detail(row)}</td>
									</tr>
								),
							];
						})}
					</tbody>
				</table>
			</div>
			{rows.length > shown.length && (
				<p class="more">
					<button type="button" onClick={() => setMore(more + 1)}>
						Show {count(Math.min(first, rows.length - shown.length))} more of {count(rows.length)}
					</button>
				</p>
			)}
		</>
	);
}
