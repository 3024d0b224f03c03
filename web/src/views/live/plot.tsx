import { useMemo } from "preact/hooks";
import type { Look, Looks } from "../../api";
import { useAnswer } from "../../answer";
import { bytes, seconds } from "../../format";
import { Plot } from "../../parts/plot";

/* The timeline is asked for again when so many looks came after it. */
const LOOKS_OF_TIMELINE = 300;

/* 0 of the timeline and null of a look: not known yet. */
const known = (n: number | null | undefined): number | null => (n === 0 ? null : (n ?? null));

/* What the recorder saw before the page was opened, and the looks since. */
function joined(past: Looks | undefined, looks: readonly Look[]) {
	const first = looks[0];
	const start = first ? seconds(first.timestamp) - seconds(first.timestamp_relative) : 0;
	const before = (past?.xs ?? []).map((ms) => ms / 1000 - start);
	const end = before.at(-1) ?? -1;
	const later = looks.filter((l) => seconds(l.timestamp_relative) > end + 0.1);

	return {
		xs: [...before, ...later.map((l) => seconds(l.timestamp_relative))],
		lines: [
			{
				title: "Live",
				colour: "--line-1",
				filled: true,
				values: [...(past?.live_bytes ?? []), ...later.map((l) => l.live_bytes)],
			},
			{
				title: "Resident",
				colour: "--line-2",
				dashed: true,
				values: [...(past?.resident_bytes ?? []).map(known), ...later.map((l) => known(l.resident_bytes))],
			},
		],
	};
}

/** Live and resident memory until the last look.  @seen: the number of looks so far. */
export function LivePlot({ looks, seen }: { looks: readonly Look[]; seen: number }) {
	const past = useAnswer<Looks>("live/timeline", {}, 1 + Math.floor(seen / LOOKS_OF_TIMELINE)).value;
	const { xs, lines } = useMemo(() => joined(past, looks), [past, looks]);
	const last = looks.at(-1);

	return (
		<section class="card wide">
			<h2>Memory over time</h2>
			<Plot
				xs={xs}
				lines={lines}
				show={bytes}
				label={`Live and resident memory until now: ${bytes(last?.live_bytes ?? 0)} live`}
			/>
		</section>
	);
}
