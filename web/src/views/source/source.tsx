import { useMemo } from "preact/hooks";
import { useReport, useText } from "../../answer";
import { base } from "../../format";
import { type Annotated, annotatedFiles, partsOf } from "./annotated";
import { Check, Choose, chosen } from "../../parts/choose";
import { Filters } from "../../parts/filters";
import { SourceFiles } from "./files";
import { SourceTable } from "./table";
import { Failure, Shown } from "../../parts/states";
import { choice, filters, linkTo } from "../../state";

/* A longer file is first shown in parts. */
const LONG = 5000;
const AROUND = 4;

/* What the last column of bytes sums up. */
const throughs = [
	{ name: "allocated", title: "Allocated" },
	{ name: "live", title: "Live at the end" },
	{ name: "peak", title: "Live at the peak" },
	{ name: "mapped", title: "Mapped by the program" },
];

function File({ of: f }: { of: Annotated }) {
	const marked = Number(choice("line", "0"));
	const short = f.lines.length <= LONG;
	const whole = chosen("whole", short);
	const parts = useMemo(
		() => (whole ? [{ lines: f.lines, left: 0 }] : partsOf(f.lines, marked, AROUND)),
		[f, whole, marked],
	);
	const title = throughs.find((t) => t.name === choice("through"))?.title ?? "Allocated";

	return (
		<section>
			<h2>{f.path}</h2>
			{!f.readable && (
				<Failure
					title="This file cannot be read on the server's machine"
					why="So the lines that allocate are here without their text. memprof report --annotate with --source-prefix finds sources elsewhere."
				/>
			)}
			{f.warnings.map((w) => (
				<p key={w} class="card doubts">
					Uncertain: {w}.
				</p>
			))}
			{f.readable && <Check name="whole" label="All lines, not only those near allocations" usual={short} />}
			<SourceTable caption={f.path} parts={parts} marked={marked} through={`${title}, through it`} />
		</section>
	);
}

function Source({ file }: { file: string }) {
	const answer = useText("annotate", {
		...filters.value,
		file,
		cost: choice("through") || undefined,
	});
	const files = useMemo(() => annotatedFiles(answer.value ?? ""), [answer.value]);

	if (answer.error?.status === 404)
		return (
			<Failure
				title={`${base(file)} is not shown`}
				why="No stack that the filters let through has a line of this file, and the server reads only files that the recording names."
			/>
		);
	return (
		<>
			<div class="choices">
				<Choose name="through" label="Bytes of all that a line calls" options={throughs} />
			</div>
			<p class="about">
				Live, allocated and temporary are bytes of the allocations that a line itself makes; the last column
				is of all stacks through it.
			</p>
			<Shown answer={answer}>
				{() => (
					<>
						{files.map((f) => (
							<File key={f.path} of={f} />
						))}
					</>
				)}
			</Shown>
		</>
	);
}

function Files() {
	return <Shown answer={useReport()}>{(r) => <SourceFiles report={r} />}</Shown>;
}

/** A source file with the bytes of its lines, or the files that there are. */
export function SourceFile() {
	const file = choice("file");

	return (
		<>
			<Filters />
			{file === "" ? (
				<Files />
			) : (
				<>
					<p>
						<a href={linkTo({ file: undefined, line: undefined })}>All source files</a>
					</p>
					<Source file={file} />
				</>
			)}
		</>
	);
}
