/* The columns of the table of stacks. */
import type { Sums } from "../../api";
import { bytes, count, duration, siteName } from "../../format";
import { choice, go } from "../../state";
import type { Row } from "./rows";
import { PlaceLink } from "../../parts/stack";
import type { Column } from "../../parts/table";

type Numbers = { [K in keyof Required<Sums>]: K extends `standard_error_${string}` ? never : K }[keyof Sums];

function sum(
	key: NonNullable<Numbers>,
	title: string,
	show: (n: number) => string,
	error?: keyof Sums,
): Column<Row> {
	return {
		key,
		title,
		number: true,
		value: (r) => r[key],
		show: (r) => {
			const e = error && r[error];

			return e ? `${show(r[key])} ± ${show(e)}` : show(r[key]);
		},
	};
}

function time(key: "first" | "last", title: string): Column<Row> {
	return { key, title, number: true, value: (r) => r[key], show: (r) => duration(r[key]) };
}

const choosable: readonly Column<Row>[] = [
	sum("size", "Allocated", bytes, "standard_error_allocated_bytes"),
	sum("allocated_count", "Allocations", count, "standard_error_allocations"),
	sum("leaked_bytes", "Live", bytes, "standard_error_leaked_bytes"),
	sum("leaked_count", "Live blocks", count, "standard_error_leaked_count"),
	sum("peak_bytes", "At the peak", bytes),
	sum("peak_count", "Blocks at the peak", count),
	sum("temporary_count", "Temporary", count),
	sum("freed_count", "Freed", count),
	sum("usable_size", "Usable", bytes),
	sum("uncertain_count", "Uncertain", count),
	sum("maps", "Mappings", count),
	sum("map_bytes", "Mapped", bytes),
	time("first", "First"),
	time("last", "Last"),
	{ key: "shape", title: "Shape", value: (r) => r.shape ?? "", show: (r) => r.shape ?? "–" },
];

const COMMON = ["size", "allocated_count", "leaked_bytes", "leaked_count", "peak_bytes"];

const ABOUT: Record<string, string> = {
	size: "requested bytes",
	uncertain_count: "at most this many of the live blocks may have been freed",
	temporary_count: "freed before the next allocation of the thread",
	usable_size: "bytes that the allocator gave, of all allocations",
	shape: "how the live bytes of the stack went over time",
};

const site: readonly Column<Row>[] = [
	{ key: "name", title: "Function", value: siteName, show: (r) => <code>{siteName(r)}</code> },
	{
		key: "place",
		title: "Place",
		minor: true,
		value: (r) => r.source ?? r.library ?? "",
		show: (r) => (r.source ? <PlaceLink file={r.source} line={r.line} /> : (r.library ?? "")),
	},
];

/* Names of columns, in their order; common ones if none is chosen. */
function columnNames(chosen: string): string[] {
	const names = chosen.split(",").filter(Boolean);

	return names.length > 0 ? names : COMMON;
}

/** What a row is of, and the columns that are chosen.  @choice: as in the URL. */
export function columnsOf(choice: string): Column<Row>[] {
	const chosen = columnNames(choice);

	return [
		...site,
		...choosable
			.filter((c) => chosen.includes(c.key))
			.map((c) => (ABOUT[c.key] ? { ...c, about: ABOUT[c.key] ?? "" } : c)),
	];
}

/** Which columns the table has. */
export function ColumnChoice() {
	const chosen = columnNames(choice("columns"));
	const change = (key: string, wanted: boolean) => {
		const next = choosable.map((c) => c.key).filter((k) => (k === key ? wanted : chosen.includes(k)));
		const usual = next.join() === COMMON.join() || next.length === 0;

		go({ columns: usual ? undefined : next.join() });
	};

	return (
		<details class="columns">
			<summary>Columns</summary>
			<div>
				{choosable.map((c) => (
					<label key={c.key} class="check">
						<input
							type="checkbox"
							checked={chosen.includes(c.key)}
							onChange={(e) => change(c.key, e.currentTarget.checked)}
						/>
						<span>{c.title}</span>
					</label>
				))}
				<button type="button" onClick={() => go({ columns: choosable.map((c) => c.key).join() })}>
					All
				</button>
				<button type="button" onClick={() => go({ columns: undefined })}>
					Common
				</button>
			</div>
		</details>
	);
}
