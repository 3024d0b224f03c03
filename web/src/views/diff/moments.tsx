import { useMemo } from "preact/hooks";
import type { Report } from "../../api";
import { bytes, duration, seconds, timeFilter } from "../../format";
import { choice, go } from "../../state";
import { Plot } from "../../parts/plot";

const UNITS: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, "": 1 };

/** A time as it can be typed, in seconds since the start; undefined: it cannot be read here.  @runtime: in seconds. */
export function secondsOf(text: string, runtime: number): number | undefined {
	if (/^[\d.]+%$/.test(text)) return (runtime * parseFloat(text)) / 100;
	if (!/^([\d.]+(h|ms|m|s|us|ns)?)+$/.test(text)) return undefined;
	return [...text.matchAll(/([\d.]+)(h|ms|m|s|us|ns)?/g)].reduce(
		(sum, [, n, unit]) => sum + Number(n) * (UNITS[unit ?? ""] ?? 1),
		0,
	);
}

/** An input for a moment, in the URL as @name. */
export function Moment({ name, label, usual }: { name: string; label: string; usual: string }) {
	return (
		<label class="choose">
			<span>{label}</span>
			<input
				class="moment"
				value={choice(name)}
				placeholder={`${usual}: 10s, 50%`}
				onChange={(e) => go({ [name]: e.currentTarget.value.trim() || undefined })}
			/>
		</label>
	);
}

/** Live memory, to choose two moments from.  @both: they are of this recording. */
export function Moments({ report, both }: { report: Report; both: boolean }) {
	const runtime = seconds(report.runtime);
	const at = choice("at");
	const withAt = choice("with_at");
	const xs = useMemo(() => report.timeline.map((p) => seconds(p.timestamp_relative)), [report]);
	const lines = useMemo(
		() => [
			{ title: "Live", colour: "--line-1", filled: true, values: report.timeline.map((p) => p.live_bytes) },
		],
		[report],
	);
	const marked = useMemo(() => {
		const from = at ? secondsOf(at, runtime) : runtime;
		const to = withAt ? secondsOf(withAt, runtime) : runtime;

		return both && (at || withAt) && from !== undefined && to !== undefined
			? ([Math.min(from, to), Math.max(from, to)] as const)
			: undefined;
	}, [at, withAt, runtime, both]);

	return (
		<Plot
			xs={xs}
			lines={lines}
			show={bytes}
			height={160}
			marked={marked}
			label={`Live memory over ${duration(runtime)}`}
			{...(both && {
				onBrush: (from: number, to: number) => go({ at: timeFilter(from), with_at: timeFilter(to) }),
			})}
		/>
	);
}
