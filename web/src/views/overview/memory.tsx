import { useMemo } from "preact/hooks";
import type { Growth, Report } from "../../api";
import { bytes, duration, seconds, siteName, timeFilter } from "../../format";
import { type Changes, choice, go, source } from "../../state";
import { Choose } from "../../parts/choose";
import { type Line, Plot } from "../../parts/plot";

const MOST_SITES = 6;

/* The value of the last sample at or before each time. */
function sampled(xs: readonly number[], samples: Report["samples"]): (number | null)[] {
	let i = 0;

	return xs.map((x) => {
		while (i < samples.length && seconds(samples[i]?.timestamp_relative ?? { secs: 0, fract_nsecs: 0 }) <= x)
			i++;
		return samples[i - 1]?.rss ?? null;
	});
}

function ofProcess(r: Report): { xs: number[]; lines: Line[] } {
	const xs = r.timeline.map((p) => seconds(p.timestamp_relative));

	return {
		xs,
		lines: [
			{ title: "Live", colour: "--line-1", filled: true, values: r.timeline.map((p) => p.live_bytes) },
			{ title: "Resident", colour: "--line-2", dashed: true, values: sampled(xs, r.samples) },
		],
	};
}

/* Each line is drawn on top of the sum of those of smaller sites, the biggest first. */
function bySite(g: Growth): { xs: number[]; lines: Line[] } {
	const biggest = [...g.sites]
		.sort((a, b) => Math.max(0, ...b.levels) - Math.max(0, ...a.levels))
		.filter((s) => s.levels.some((l) => l > 0));
	const points = g.sites[0]?.levels.length ?? 0;
	const step = seconds(g.point);
	const xs = Array.from({ length: points }, (_, i) => (i + 1) * step);
	const rest = Array.from({ length: points }, (_, i) =>
		biggest.slice(MOST_SITES).reduce((sum, s) => sum + (s.levels[i] ?? 0), 0),
	);
	const lines: Line[] = [{ title: "Others", colour: "--line-others", filled: true, values: rest }];
	let below = rest;

	for (const [i, s] of biggest.slice(0, MOST_SITES).reverse().entries()) {
		below = below.map((b, k) => b + (s.levels[k] ?? 0));
		lines.unshift({ title: siteName(s), colour: `--line-${(i % 6) + 1}`, filled: true, values: below });
	}
	return { xs, lines };
}

/* The filters for a part of the time, in seconds. */
function conditions(r: Report, from: number, to: number): Changes {
	if (choice("dragging") !== "live") return { from: timeFilter(from), to: timeFilter(to) };
	const ends = r.timeline.map((p) => ({ at: seconds(p.timestamp_relative), live: p.live_bytes }));
	const inside = ends.filter((e) => e.at >= from && e.at <= to);
	const most = inside.reduce((a, b) => (b.live > a.live ? b : a), { at: to, live: -1 });

	return { alive_at: timeFilter(most.at) };
}

/** Live and resident memory, or live memory by site; the part of the time that is dragged over becomes a filter. */
export function MemoryOverTime({ report, growth }: { report: Report; growth: Growth | undefined }) {
	const stacked = choice("over_time") === "sites" && growth !== undefined;
	const { xs, lines } = useMemo(
		() => (stacked ? bySite(growth) : ofProcess(report)),
		[stacked, growth, report],
	);
	const marks = useMemo(
		() => report.markers.map((m) => ({ at: seconds(m.timestamp_relative), name: m.name })),
		[report],
	);
	const served = source().kind === "server";

	return (
		<section class="card wide">
			<h2>Memory over time</h2>
			<div class="choices">
				<Choose
					name="over_time"
					label="Show"
					options={[
						{ name: "process", title: "Live and resident" },
						{ name: "sites", title: "Live, the biggest sites stacked" },
					]}
				/>
				{served && (
					<Choose
						name="dragging"
						label="Drag over a part of the time: every view then has"
						options={[
							{ name: "allocated", title: "what was allocated in it" },
							{ name: "live", title: "what was live when most was" },
						]}
					/>
				)}
			</div>
			<Plot
				xs={xs}
				lines={lines}
				marks={marks}
				show={bytes}
				label={`Live memory over ${duration(seconds(report.runtime))}: at most ${bytes(report.totals.peak_bytes)}, ${bytes(report.totals.leaked_bytes)} at the end`}
				{...(served && { onBrush: (from, to) => go(conditions(report, from, to)) })}
			/>
		</section>
	);
}
