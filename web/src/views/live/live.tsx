import { useEffect, useState } from "preact/hooks";
import type { Look } from "../../api";
import { forgetAnswers } from "../../answer";
import { seconds } from "../../format";
import { LeaksNow } from "../../parts/leaks_now";
import { LiveControls } from "./controls";
import { LivePlot } from "./plot";
import { LiveSums } from "./sums";
import { LiveTable } from "./table";
import { type Looking, useLooks } from "./looks";
import { Failure } from "../../parts/states";
import { linkTo } from "../../state";

/* The time of a look, as a number that is never 0. */
const tickOf = (look: Look): number => 1 + Math.round(1000 * seconds(look.timestamp_relative));

function Ended() {
	return (
		<div class="card ended" role="status">
			<h2>The recording has ended</h2>
			<p>
				<a href={linkTo({}, "overview")}>The overview</a> has all of it.
			</p>
		</div>
	);
}

/** A recording in progress: its numbers move, and can be controlled. */
export function Live() {
	const looking = useLooks();
	const [held, setHeld] = useState<Looking>();
	const [detached, setDetached] = useState(false);
	const { lost } = looking;
	const shown = held ?? looking;
	const look = shown.looks.at(-1);
	const ended = detached || looking.looks.at(-1)?.ended === true;

	/* The file has all of it now. */
	useEffect(() => {
		if (ended) forgetAnswers();
	}, [ended]);
	if (!look)
		return lost === "refused" ? (
			<Failure title="Nothing to watch" why="The recording is not in progress: see the overview." />
		) : (
			<p class="waiting" role="status">
				Waiting for the recorder…
			</p>
		);
	return (
		<div class="stacked">
			{ended && <Ended />}
			{lost !== "" && !ended && (
				<Failure
					title="The connection was lost"
					why={lost === "refused" ? "The recording may have ended: see the overview." : "It is tried again."}
				/>
			)}
			{!ended && (
				<LiveControls
					look={look}
					frozen={held !== undefined}
					freeze={() => setHeld(held ? undefined : looking)}
					ended={() => setDetached(true)}
				/>
			)}
			<LiveSums look={look} ended={ended} />
			<LivePlot looks={shown.looks} seen={shown.seen} />
			{!ended && <LiveTable tick={tickOf(look)} />}
			{!ended && <LeaksNow />}
		</div>
	);
}
