import { useMemo } from "preact/hooks";
import type { Group, Report } from "../../api";
import { useReport } from "../../answer";
import { bytes, count } from "../../format";
import { Choose } from "../../parts/choose";
import { ColumnChoice, columnsOf } from "./columns";
import { type By, bys, matching, type Row, rowsOf } from "./rows";
import { Search } from "../../parts/search";
import { sortBy, sortChoice } from "../../parts/sorting";
import { Stack } from "../../parts/stack";
import { Empty, Shown } from "../../parts/states";
import { Table } from "../../parts/table";
import { choice, linkTo, source } from "../../state";

const MOST_STACKS = 5;

/* The server's answers about these stacks alone. */
function Links({ groups }: { groups: readonly Group[] }) {
	const only = { backtraces: groups.map((g) => String(g.backtrace_id)), page: undefined };
	const these = groups.length === 1 ? "this stack" : "these stacks";

	if (source().kind === "file") return null;
	return (
		<ul class="links">
			<li>
				<a href={linkTo(only, "groups")}>Filter by {these}</a>
			</li>
			<li>
				<a href={linkTo(only, "allocations")}>Single allocations of {these}</a>
			</li>
			<li>
				<a href={linkTo(only, "flame")}>Flame graph of {these}</a>
			</li>
		</ul>
	);
}

function Detail({ row }: { row: Row }) {
	const shown = row.groups.slice(0, MOST_STACKS);
	const left = row.groups.length - shown.length;

	return (
		<>
			{shown.map((g) => (
				<section key={g.backtrace_id} aria-label={`Stack ${g.backtrace_id}`}>
					{row.groups.length > 1 && (
						<h3>
							{bytes(g.size)} in {count(g.allocated_count)} allocations, {bytes(g.leaked_bytes)} live
						</h3>
					)}
					<Stack frames={g.backtrace} />
					{!g.complete && <p class="about">Callers of the outermost frame are missing.</p>}
					<Links groups={[g]} />
				</section>
			))}
			{left > 0 && <p class="about">{count(left)} more stacks allocated less.</p>}
		</>
	);
}

function Rows({ report }: { report: Report }) {
	const by = bys.find((b) => b.name === choice("by"))?.name ?? ("stack" satisfies By);
	const search = choice("search");
	const all = useMemo(() => rowsOf(report, by), [report, by]);
	const rows = useMemo(() => matching(all, search), [all, search]);
	const chosen = choice("columns");
	const shown = useMemo(() => columnsOf(chosen), [chosen]);

	if (all.length === 0) return <Empty>No allocation was recorded that the filters let through.</Empty>;
	return (
		<>
			{search !== "" && (
				<p role="status">
					{count(rows.length)} of {count(all.length)} rows have such a function.
				</p>
			)}
			<Table
				caption={`Allocations by ${by}`}
				columns={shown}
				rows={rows}
				rowKey={(r) => r.key}
				sort={sortChoice(shown, "size")}
				onSort={sortBy}
				detail={(r) => <Detail row={r} />}
			/>
		</>
	);
}

/** All stacks of the report, with every sum. */
export function Groups() {
	return (
		<>
			<div class="choices">
				<Choose name="by" label="One row for each" options={bys} />
				<Search label="Function in the stack" />
				<ColumnChoice />
			</div>
			<Shown answer={useReport()}>{(r) => <Rows report={r} />}</Shown>
		</>
	);
}
