import { useMemo } from "preact/hooks";
import type { MapsTimeline } from "../../api";
import { bytes } from "../../format";
import { type Line, Plot } from "../../parts/plot";

/** The process's memory over time.  @start: of the recording, Unix time in seconds. */
export function AddressSpace({ timeline: t, start }: { timeline: MapsTimeline; start: number | undefined }) {
	const { xs, lines } = useMemo(() => {
		const zero = start ?? (t.xs[0] ?? 0) / 1000;

		return {
			xs: t.xs.map((ms) => ms / 1000 - zero),
			lines: [
				{ title: "Address space", colour: "--line-others", dashed: true, values: t.address_space },
				{ title: "Resident", colour: "--line-2", filled: true, values: t.rss },
				{ title: "Anonymous", colour: "--line-1", filled: true, values: t.anonymous },
				{ title: "Swapped out", colour: "--line-4", values: t.swap },
			] satisfies Line[],
		};
	}, [t, start]);

	if (xs.length < 2)
		return <p class="about">The recording is too short: it is looked at about once a second.</p>;
	return (
		<>
			<p class="about">A click on a name in the legend hides its line.</p>
			<Plot
				xs={xs}
				lines={lines}
				show={bytes}
				label={`Address space, at the end ${bytes(t.address_space.at(-1) ?? 0)}, of which ${bytes(t.rss.at(-1) ?? 0)} were resident`}
			/>
		</>
	);
}
