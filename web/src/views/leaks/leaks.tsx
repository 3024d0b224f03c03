import { useMemo } from "preact/hooks";
import type { Growth, GrowthSite, Shape } from "../../api";
import { useFiltered } from "../../answer";
import { bytes, change, count, duration, seconds, siteName, sitePlace } from "../../format";
import { Choose } from "../../parts/choose";
import { FilterLinks } from "../../parts/filter_links";
import { GroupStack } from "./group_stack";
import { useChosenRecording } from "../../parts/in_progress";
import { LeaksNow } from "../../parts/leaks_now";
import { RetainedNow } from "./retained_now";
import { Spark } from "../../parts/spark";
import { Empty, Shown } from "../../parts/states";
import { type Column, Table } from "../../parts/table";
import { choice, go, source } from "../../state";

const SHAPES: Record<Shape, string> = {
	growing: "grows steadily",
	plateau: "plateau",
	burst: "was a burst",
	sawtooth: "sawtooth",
};

const shapeOf = (s: GrowthSite): string => (s.shape === null ? "–" : SHAPES[s.shape]);

const columns: readonly Column<GrowthSite>[] = [
	{
		key: "site",
		title: "Site",
		value: (s) => siteName(s),
		show: (s) => (
			<>
				<code>{siteName(s)}</code> <span class="place">{sitePlace(s)}</span>
			</>
		),
	},
	{
		key: "levels",
		title: "Live over time",
		value: (s) => Math.max(0, ...s.levels),
		show: (s) => (
			<Spark
				values={s.levels}
				label={`at most ${bytes(Math.max(0, ...s.levels))}, at the end ${bytes(s.leaked_bytes)}`}
			/>
		),
		number: true,
	},
	{ key: "shape", title: "Shape", value: shapeOf },
	{
		key: "growth",
		title: "Growth/min",
		about: "change of live bytes per minute in the second half of the time",
		value: (s) => s.growth_per_minute ?? s.growth_bytes,
		show: (s) =>
			s.growth_per_minute === null ? `${change(s.growth_bytes)} in all` : change(s.growth_per_minute),
		number: true,
	},
	{
		key: "live",
		title: "Live bytes",
		value: (s) => s.leaked_bytes,
		show: (s) => bytes(s.leaked_bytes),
		number: true,
	},
	{
		key: "blocks",
		title: "Blocks",
		value: (s) => s.leaked_count,
		show: (s) => count(s.leaked_count),
		number: true,
		minor: true,
	},
	{
		key: "allocated",
		title: "Allocated",
		value: (s) => s.size,
		show: (s) => bytes(s.size),
		number: true,
		minor: true,
	},
];

function Detail({ site }: { site: GrowthSite }) {
	return (
		<>
			<p class="about">
				{site.stacks === 1 ? "Its stack" : `Of its ${count(site.stacks)} stacks the one that has most`}
			</p>
			<GroupStack id={site.backtrace_id} />
			<FilterLinks only="this stack" filter={{ backtraces: String(site.backtrace_id) }} />
		</>
	);
}

function Sites({ growth, shape }: { growth: Growth; shape: string }) {
	const sites = useMemo(
		() => growth.sites.filter((s) => shape === "all" || s.shape === shape),
		[growth, shape],
	);

	if (sites.length === 0) return <Empty>No site matches.</Empty>;
	return (
		<>
			<p class="about">
				Growth is measured since {duration(seconds(growth.growth_since))}, the middle of the recording.
			</p>
			<Table
				caption="Sites that grow"
				columns={columns}
				rows={sites}
				rowKey={(s) => s.backtrace_id}
				sort={choice("growth_sort", "growth")}
				onSort={(key) => go({ growth_sort: key })}
				detail={(s) => <Detail site={s} />}
			/>
		</>
	);
}

function Growing() {
	const served = source().kind === "server";
	const shape = choice("growth_shape", "all");
	const by = choice("growth_by", "line");
	const growth = useFiltered<Growth>("growth", {
		group_by: served && by !== "line" ? by : undefined,
		shape: served && shape !== "all" ? shape : undefined,
	});

	return (
		<section>
			<h2>What grows</h2>
			<div class="choices">
				{served && (
					<Choose
						name="growth_by"
						label="A site is"
						options={[
							{ name: "line", title: "a line" },
							{ name: "function", title: "a function" },
							{ name: "library", title: "a library" },
							{ name: "class", title: "a class" },
							{ name: "stack", title: "a stack" },
						]}
					/>
				)}
				<Choose
					name="growth_shape"
					label="Shape"
					options={[
						{ name: "all", title: "any" },
						{ name: "growing", title: "grows steadily" },
						{ name: "plateau", title: "plateau" },
						{ name: "burst", title: "burst" },
						{ name: "sawtooth", title: "sawtooth" },
					]}
				/>
			</div>
			<Shown answer={growth}>{(g) => <Sites growth={g} shape={shape} />}</Shown>
		</section>
	);
}

/** Which sites grow; of a recording in progress also what nothing points to any more. */
export function Leaks() {
	const inProgress = useChosenRecording()?.in_progress === true;

	return (
		<>
			<p class="about">
				These blocks were not freed in the recording. A leak report
				{inProgress ? "" : " of the running process (memprof leaks)"} says which of them nothing points to any
				more.
			</p>
			{inProgress && (
				<div class="stacked">
					<LeaksNow />
					<RetainedNow />
				</div>
			)}
			<Growing />
		</>
	);
}
