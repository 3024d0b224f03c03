/* What is uncertain about the numbers of a report, and why. */
import type { Losses, Quick, Report, Totals } from "./api";
import { bytes, count, percent } from "./format";

type Known = Pick<Quick, "losses" | "thinning" | "truncated" | "sample_interval" | "overhead_budget"> & {
	totals: Partial<Totals>;
};

/* The sum of losses of these names. */
const sum = (l: Losses, ...names: string[]): number => names.reduce((n, name) => n + (l[name] ?? 0), 0);

/* Events that were lost, as the summary of memprof report counts them. */
function lostOf(l: Losses): string[] {
	const all = sum(
		l,
		...[
			"lost_allocations",
			"lost_frees",
			"lost_reallocs",
			"lost_maps",
			"lost_other",
			"lost_no_slot",
			"stale",
		],
		...["queue_dropped_events", "restart_allocations", "restart_frees", "restart_reallocs", "restart_maps"],
	);
	const frees = sum(
		l,
		...["lost_frees", "lost_reallocs", "lost_no_slot_frees", "stale_frees"],
		...["queue_dropped_frees", "queue_dropped_reallocs", "restart_frees", "restart_reallocs"],
	);

	if (all === 0) return [];
	return [
		`${count(all)} events were lost: sums are too low.`,
		...(frees > 0
			? [`${count(frees)} of them are frees or reallocs: blocks that were freed may count as live.`]
			: []),
	];
}

/** One sentence for each doubt; none: the numbers are exact. */
export function doubtsOf({ totals: t, losses: l, ...r }: Known): string[] {
	const found: string[] = [];
	const leftOut = sum(l, "left_out_allocations");
	const mismatches = sum(l, "mismatches");

	if (r.truncated !== null) found.push(`The recording is cut off: ${r.truncated}`);
	if (r.sample_interval > 0)
		found.push(
			`The recording is a sample, on average one point per ${bytes(r.sample_interval)}: bytes and numbers of blocks are estimates.`,
		);
	if (r.thinning !== null && r.overhead_budget !== undefined)
		found.push(
			`About ${count(r.thinning.thinned_allocations)} allocations (${bytes(r.thinning.thinned_bytes)}) were not recorded, ` +
				`for a cost of at most ${percent(r.overhead_budget, 1)} of the CPU time, and others represent them: sums are estimates.`,
		);
	else if (r.thinning !== null)
		found.push(
			`${count(r.thinning.thinned_allocations)} allocations (${bytes(r.thinning.thinned_bytes)}) were thinned out, ` +
				"and others represent them: sums are estimates.",
		);
	found.push(...lostOf(l));
	if (t.uncertain_count)
		found.push(`At most ${count(t.uncertain_count)} of the live blocks may have been freed.`);
	if (mismatches > 0)
		found.push(`${count(mismatches)} addresses were allocated again although no free was recorded.`);
	if (leftOut > 0)
		found.push(
			`${count(leftOut)} allocations were left out on purpose: of other threads, or while the recording was paused.`,
		);
	if (t.culled_count)
		found.push(
			`${count(t.culled_count)} short-lived blocks (${bytes(t.culled_bytes ?? 0)}) ` +
				"are only in the sums, not in lists of single ones.",
		);
	if (t.culled_count && t.peak_has_culled === false)
		found.push("The peak and the memory over time do not include short-lived blocks.");
	return found;
}

/** Doubts about stacks and names, which need the whole report. */
export function stackDoubtsOf(r: Report): string[] {
	const found: string[] = [];
	const ends = r.incomplete_stacks.reduce((n, e) => n + e.stacks, 0);
	const unnamed = r.missing_symbols.filter((m) => m.without_function > 0);

	if (ends > 0) {
		const first = r.incomplete_stacks[0];

		found.push(
			`${count(ends)} stacks are incomplete` +
				(first
					? `, most of them in ${first.library ?? "code without a file"} (${first.reason.replaceAll("_", " ")}).`
					: "."),
		);
	}
	for (const m of unnamed.slice(0, 3))
		found.push(
			`${m.library} has no symbols for ${count(m.without_function)} addresses` +
				(m.debug_package ? `: install ${m.debug_package}.` : "."),
		);
	if (r.all && r.all.not_judged_count > 0)
		found.push(
			`The filter cannot be applied to ${count(r.all.not_judged_count)} short-lived blocks ` +
				`(${bytes(r.all.not_judged_bytes)}), of which only sums are known.`,
		);
	return found;
}
