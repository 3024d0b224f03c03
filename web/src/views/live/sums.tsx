import type { Look } from "../../api";
import { bytes, change, count, duration, seconds } from "../../format";

function Sum({
	title,
	value,
	shown,
	about,
}: {
	title: string;
	value: number;
	shown: string;
	about?: string;
}) {
	return (
		<div class="fact">
			<dt>{title}</dt>
			<dd>
				<strong data-value={value}>{shown}</strong>
				<span>{about}</span>
			</dd>
		</div>
	);
}

function doubtsOf(l: Look): string[] {
	const found: string[] = [];

	if (l.estimated)
		found.push(
			l.live_bytes_error > 0
				? `Bytes and numbers of blocks are estimates: live bytes ± ${bytes(l.live_bytes_error)}.`
				: "Bytes and numbers of blocks are estimates.",
		);
	if (l.thinned_allocations > 0)
		found.push(`${count(l.thinned_allocations)} allocations were not recorded; others represent them.`);
	if (l.lost_events > 0) found.push(`${count(l.lost_events)} events were lost.`);
	return found;
}

/** The sums of a look, and what is uncertain about them. */
export function LiveSums({ look, ended }: { look: Look; ended: boolean }) {
	const found = doubtsOf(look);

	return (
		<section class="card">
			<h2>
				{ended ? "Recorded" : look.paused ? "Paused" : "Recording"},{" "}
				{duration(seconds(look.timestamp_relative))}
			</h2>
			<dl class="facts">
				<Sum
					title="Live"
					value={look.live_bytes}
					shown={bytes(look.live_bytes)}
					about={`${count(look.live_blocks)} blocks`}
				/>
				<Sum
					title="Growth a second"
					value={look.growth_per_second ?? 0}
					shown={look.growth_per_second === undefined ? "–" : change(look.growth_per_second)}
				/>
				<Sum
					title="Allocations a second"
					value={look.allocations_per_second ?? 0}
					shown={look.allocations_per_second === undefined ? "–" : count(look.allocations_per_second)}
					about={
						look.allocated_bytes_per_second === undefined
							? ""
							: `${bytes(look.allocated_bytes_per_second)} a second`
					}
				/>
				<Sum
					title="Resident"
					value={look.resident_bytes ?? 0}
					shown={look.resident_bytes === null ? "–" : bytes(look.resident_bytes)}
				/>
				<Sum
					title="Lost events"
					value={look.lost_events}
					shown={count(look.lost_events)}
					about={`numbers are ${look.estimated ? "estimates" : "exact"}${look.lost_events > 0 ? ", but for these" : ""}`}
				/>
				<Sum
					title="Recorder behind"
					value={look.behind_ns}
					shown={duration(look.behind_ns / 1e9)}
					about="the program"
				/>
			</dl>
			{found.length > 0 && (
				<ul class="unsure">
					{found.map((d) => (
						<li key={d}>{d}</li>
					))}
				</ul>
			)}
		</section>
	);
}
