/* Frames of lists of single allocations and maps. */
import type { Frame, Group, ListedFrame, Report } from "../api";

/** As frames of a report. */
export function framesOf(listed: readonly ListedFrame[]): Frame[] {
	return listed.map((f) => ({ ...f, function: f.function ?? f.raw_function ?? null }));
}

/** The groups of a report by the id of their stack, to know a listed stack's user frame and folded frames. */
export function groupsById(r: Report | undefined): ReadonlyMap<number, Group> {
	return new Map(r?.allocation_groups.map((g) => [g.backtrace_id, g]));
}

/** The user's frame of a stack, or its innermost one. */
export function userFrame(group: Group | undefined, listed: readonly ListedFrame[]): Frame | undefined {
	const frames = group?.backtrace ?? framesOf(listed);
	const at = group?.user_frame ?? frames.length - 1;

	return frames[at];
}
