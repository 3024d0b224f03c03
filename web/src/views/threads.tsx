import type { Threads as Answer } from "../api";
import { useThreads } from "../answer";
import { count } from "../format";
import { FilterLinks } from "../parts/filter_links";
import { Shown } from "../parts/states";
import { allocated, allocations, live, liveBlocks, temporary } from "../parts/sum_columns";
import { type Column, Table } from "../parts/table";
import { choice, go, linkTo, source } from "../state";

type Row = Answer["threads"][number];

const only = (r: Row) => ({ thread: String(r.thread) });

function Name({ row }: { row: Row }) {
	const name = row.name ?? "no name";

	if (source().kind === "file") return <>{name}</>;
	return (
		<a href={linkTo(only(row), "flame")} title={`Only thread ${row.thread}, in the flame graph`}>
			{name}
		</a>
	);
}

const columns: readonly Column<Row>[] = [
	{ key: "name", title: "Thread", value: (r) => r.name ?? "", show: (r) => <Name row={r} /> },
	{ key: "id", title: "Id", value: (r) => r.thread, number: true },
	live,
	liveBlocks,
	allocated("allocated"),
	allocations,
	{
		key: "frees",
		title: "Frees",
		about: "of any thread's blocks",
		value: (r) => r.frees,
		show: (r) => count(r.frees),
		number: true,
		minor: true,
	},
	temporary,
];

/** Sums by thread. */
export function Threads() {
	return (
		<Shown answer={useThreads()}>
			{(answer) => (
				<Table
					caption="Threads"
					columns={columns}
					rows={answer.threads}
					rowKey={(r) => r.thread}
					sort={choice("thread_sort", "live")}
					onSort={(key) => go({ thread_sort: key })}
					{...(source().kind === "server" && {
						detail: (r: Row) => <FilterLinks only={`thread ${r.thread}`} filter={only(r)} />,
					})}
				/>
			)}
		</Shown>
	);
}
