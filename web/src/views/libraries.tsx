import type { Libraries as Answer, ViewSums } from "../api";
import { useLibraries } from "../answer";
import { bytes } from "../format";
import { Choose } from "../parts/choose";
import { FilterLinks } from "../parts/filter_links";
import { Shown } from "../parts/states";
import { allocated, allocations, live, liveBlocks, temporary } from "../parts/sum_columns";
import { type Column, Table } from "../parts/table";
import { choice, go, linkTo, source } from "../state";

interface Row extends ViewSums {
	library: string | null;
}

const only = (library: string) => ({ library_regex: `^${library.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$` });

function Name({ library }: { library: string | null }) {
	if (library === null) return <span class="place">code without a file</span>;
	if (source().kind === "file") return <code>{library}</code>;
	return (
		<a href={linkTo(only(library), "flame")} title={`Only ${library}, in the flame graph`}>
			<code>{library}</code>
		</a>
	);
}

const columns: readonly Column<Row>[] = [
	{
		key: "library",
		title: "Library",
		value: (r) => r.library ?? "",
		show: (r) => <Name library={r.library} />,
	},
	live,
	liveBlocks,
	{
		key: "peak",
		title: "At the peak",
		value: (r) => r.peak_size,
		show: (r) => bytes(r.peak_size),
		number: true,
		minor: true,
	},
	allocated("allocated"),
	allocations,
	temporary,
];

function Sums({ answer }: { answer: Answer }) {
	const part = choice("library_part") === "anywhere" ? "anywhere" : "direct";
	const rows = answer.libraries.map((l) => ({ library: l.library, ...l[part] }));

	return (
		<Table
			caption="Libraries"
			columns={columns}
			rows={rows}
			rowKey={(r) => r.library ?? ""}
			sort={choice("library_sort", "live")}
			onSort={(key) => go({ library_sort: key })}
			{...(source().kind === "server" && {
				detail: (r: Row) =>
					r.library === null ? (
						<p>It has no name to filter by.</p>
					) : (
						<FilterLinks only={r.library} filter={only(r.library)} />
					),
			})}
		/>
	);
}

/** Sums by library. */
export function Libraries() {
	return (
		<>
			<div class="choices">
				<Choose
					name="library_part"
					label="What counts for a library"
					options={[
						{ name: "direct", title: "what its own code allocates" },
						{ name: "anywhere", title: "what has it anywhere in its stack" },
					]}
				/>
			</div>
			<Shown answer={useLibraries()}>{(answer) => <Sums answer={answer} />}</Shown>
		</>
	);
}
