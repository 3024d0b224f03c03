import { useMemo } from "preact/hooks";
import type { Group, Report } from "../../api";
import { base, bytes, count } from "../../format";
import { linkTo } from "../../state";
import { sortBy, sortChoice } from "../../parts/sorting";
import { Empty } from "../../parts/states";
import { type Column, Table } from "../../parts/table";

interface File {
	readonly path: string;
	stacks: number;
	allocated: number;
	live: number;
	peak: number;
}

/* Each stack counts once for a file, however many frames it has of it. */
function add(files: Map<string, File>, g: Group): void {
	for (const path of new Set(g.backtrace.flatMap((f) => f.source ?? []))) {
		const file = files.get(path) ?? { path, stacks: 0, allocated: 0, live: 0, peak: 0 };

		file.stacks++;
		file.allocated += g.size;
		file.live += g.leaked_bytes;
		file.peak += g.peak_bytes;
		files.set(path, file);
	}
}

function through(key: "allocated" | "live" | "peak", title: string): Column<File> {
	return { key, title, number: true, value: (f) => f[key], show: (f) => bytes(f[key]) };
}

const columns: readonly Column<File>[] = [
	{
		key: "path",
		title: "File",
		value: (f) => f.path,
		show: (f) => (
			<>
				<a href={linkTo({ file: f.path, line: undefined })}>{base(f.path)}</a>{" "}
				<span class="place minor">{f.path}</span>
			</>
		),
	},
	through("allocated", "Allocated"),
	through("live", "Live"),
	through("peak", "At the peak"),
	{
		key: "stacks",
		title: "Stacks",
		number: true,
		minor: true,
		value: (f) => f.stacks,
		show: (f) => count(f.stacks),
	},
];

/** The source files of all stacks, with the bytes of the stacks that go through them. */
export function SourceFiles({ report }: { report: Report }) {
	const files = useMemo(() => {
		const found = new Map<string, File>();

		for (const g of report.allocation_groups) add(found, g);
		return [...found.values()];
	}, [report]);

	if (files.length === 0)
		return (
			<Empty>No stack has a source file: the programs of the recording have no debug information.</Empty>
		);
	return (
		<Table
			caption="Source files, with the bytes of all stacks through them"
			columns={columns}
			rows={files}
			rowKey={(f) => f.path}
			sort={sortChoice(columns, "allocated")}
			onSort={sortBy}
		/>
	);
}
