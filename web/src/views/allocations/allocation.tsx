import type { Allocation, Group } from "../../api";
import { count, duration, seconds } from "../../format";
import { linkTo } from "../../state";
import { framesOf } from "../../parts/listed";
import { Stack } from "../../parts/stack";

/** Seconds; undefined: it was live at the end. */
export function lifetime(a: Allocation): number | undefined {
	return a.deallocation && seconds(a.deallocation.timestamp_relative) - seconds(a.timestamp_relative);
}

function End({ of: a }: { of: Allocation }) {
	const end = a.deallocation;

	if (!end) return <p>It was live at the end of the recording.</p>;
	return (
		<>
			<p>
				{duration(seconds(end.timestamp_relative))} after the start, by thread {end.thread}
			</p>
			{end.backtrace ? (
				<Stack frames={framesOf(end.backtrace)} />
			) : (
				<p class="about">Stacks of frees are recorded with --free-stacks.</p>
			)}
		</>
	);
}

/** All that is known of an allocation.  @group: its stack's in the report, which knows the runtime's frames. */
export function AllocationDetail({ of: a, group }: { of: Allocation; group: Group | undefined }) {
	return (
		<div class="pair">
			<section>
				<h3>Allocated</h3>
				{a.chain_length > 1 && (
					<p>
						Block {count(a.position_in_chain + 1)} of {count(a.chain_length)} that realloc made of each other
					</p>
				)}
				<Stack frames={group?.backtrace ?? framesOf(a.backtrace)} />
				<p>
					<a href={linkTo({ backtraces: String(a.backtrace_id), page: undefined })}>
						All allocations of this stack
					</a>
				</p>
			</section>
			<section>
				<h3>Freed</h3>
				<End of={a} />
			</section>
		</div>
	);
}
