import type { Diff as Answer, DiffSide } from "../../api";
import { useFiltered, useRecordings, useReport } from "../../answer";
import { base, bytes, change, count, duration, moment, percent, seconds } from "../../format";
import { Choose } from "../../parts/choose";
import { DiffGraph } from "./graph";
import { DiffTable } from "./table";
import { useChosenRecording } from "../../parts/in_progress";
import { Moment, Moments } from "./moments";
import { Empty, Shown } from "../../parts/states";
import { choice, linkTo } from "../../state";

const COSTS = [
	{ name: "live", title: "Live bytes" },
	{ name: "allocated", title: "Allocated bytes" },
	{ name: "count", title: "Allocations" },
	{ name: "peak", title: "Bytes at the peak" },
	{ name: "temporary", title: "Temporary allocations" },
];

const signedCount = (n: number): string => (n > 0 ? `+${count(n)}` : count(n)).replace("-", "−");

function Side({ title, side, show }: { title: string; side: DiffSide; show: (n: number) => string }) {
	return (
		<tr>
			<th scope="row">{title}</th>
			<td class="number" data-value={side.cost}>
				{show(side.cost)}
				{side.standard_error !== undefined && ` ± ${show(side.standard_error)}`}
			</td>
			<td class="number" data-value={side.count}>
				{count(side.count)}
			</td>
			<td>
				{duration(seconds(side.timestamp_relative))} of <code>{side.cmdline ?? `process ${side.pid}`}</code>
			</td>
		</tr>
	);
}

function Summary({
	diff,
	show,
	signed,
}: { diff: Answer } & Record<"show" | "signed", (n: number) => string>) {
	const { before, after } = diff;

	return (
		<div class="scroll" role="region" aria-label="Sums" tabIndex={0}>
			<table class="sums">
				<caption class="unseen">Sums before and after</caption>
				<thead>
					<tr>
						<th scope="col">
							<span class="unseen">Side</span>
						</th>
						<th scope="col" class="number">
							{COSTS.find((c) => c.name === diff.cost)?.title}
						</th>
						<th scope="col" class="number">
							Number
						</th>
						<th scope="col">At</th>
					</tr>
				</thead>
				<tbody>
					<Side title="Before" side={before} show={show} />
					<Side title="After" side={after} show={show} />
					<tr>
						<th scope="row">Change</th>
						<td class="number" data-value={after.cost - before.cost}>
							<strong>{signed(after.cost - before.cost)}</strong>
						</td>
						<td class="number" data-value={after.count - before.count}>
							{signedCount(after.count - before.count)}
						</td>
						<td>{before.cost > 0 && `to ${percent(after.cost, before.cost)} of before`}</td>
					</tr>
				</tbody>
			</table>
		</div>
	);
}

function Compared({ diff }: { diff: Answer }) {
	const isBytes = ["live", "allocated", "peak"].includes(diff.cost);
	const show = isBytes ? bytes : count;
	const signed = isBytes ? change : signedCount;

	return (
		<div class="stacked">
			<Summary diff={diff} show={show} signed={signed} />
			<section>
				<h2>Flame graph of the change</h2>
				<div class="choices">
					<Choose
						name="diff_width"
						label="Width"
						options={[
							{ name: "after", title: "after" },
							{ name: "before", title: "before" },
							{ name: "larger", title: "the larger of both" },
						]}
					/>
				</div>
				<DiffGraph diff={diff} show={show} signed={signed} />
			</section>
			<section>
				<h2>Stacks, those that grew most first</h2>
				<DiffTable diff={diff} show={show} signed={signed} />
			</section>
		</div>
	);
}

function Other() {
	const here = useChosenRecording()?.id;
	const list = useRecordings().value ?? [];
	const others = list.flatMap((r) => (r.error === undefined && r.id !== here ? [r] : []));

	if (others.length === 0) return null;
	return (
		<Choose
			name="with"
			label="Compare with"
			options={[
				{ name: "", title: "this recording" },
				...others.map((r) => ({
					name: r.id,
					title: `${base(r.executable)} ${r.pid}, ${moment(r.timestamp)}`,
				})),
			]}
		/>
	);
}

/** What changed between two moments of a recording, or from it to another recording. */
export function Diff() {
	const other = choice("with") || undefined;
	const at = choice("at") || undefined;
	const withAt = choice("with_at") || undefined;
	const cost = choice("diff_cost", "live");
	const chosen = other !== undefined || at !== undefined || withAt !== undefined;
	const report = useReport();
	const diff = useFiltered<Answer>(chosen ? "diff" : undefined, {
		with: other,
		at,
		with_at: withAt,
		cost: cost === "live" ? undefined : cost,
	});

	return (
		<>
			<div class="choices">
				<Other />
				<Moment name="at" label="Before: at" usual="the end" />
				<Moment name="with_at" label="After: at" usual="the end" />
				<Choose name="diff_cost" label="Compare" options={COSTS} />
			</div>
			{!other && <p class="about">Drag over the time between the two moments, or type them.</p>}
			<Shown answer={report}>{(r) => <Moments report={r} both={!other} />}</Shown>
			{chosen ? (
				<Shown answer={diff}>{(d) => <Compared diff={d} />}</Shown>
			) : (
				<Empty>
					Two moments are needed, such as <a href={linkTo({ at: "50%" })}>the middle and the end</a>.
				</Empty>
			)}
		</>
	);
}
