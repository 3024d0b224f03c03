/* The rows of the table of stacks: one for each stack, or for all stacks of a line, function or library. */
import type { Group, Report, Shape, Sums, Where } from "../../api";
import { seconds } from "../../format";
import { frameName } from "../../stacks";

export interface Row extends Sums, Where {
	readonly key: string;
	/** Seconds since the start. */
	readonly first: number;
	readonly last: number;
	/** Of a single stack. */
	readonly shape: Shape | null;
	/** The largest first. */
	readonly groups: readonly Group[];
}

export type By = "stack" | "line" | "function" | "library";

export const bys: readonly { name: By; title: string }[] = [
	{ name: "stack", title: "stack" },
	{ name: "line", title: "line" },
	{ name: "function", title: "function" },
	{ name: "library", title: "library" },
];

const ADDED = [
	"allocated_count",
	"size",
	"usable_size",
	"freed_count",
	"leaked_count",
	"leaked_bytes",
	"uncertain_count",
	"temporary_count",
	"peak_bytes",
	"peak_count",
	"maps",
	"map_bytes",
] as const satisfies readonly (keyof Sums)[];

const ERRORS = [
	"standard_error_allocations",
	"standard_error_allocated_bytes",
	"standard_error_leaked_count",
	"standard_error_leaked_bytes",
] as const satisfies readonly (keyof Sums)[];

/* Estimates of different stacks are independent: their variances add up. */
function add(a: Sums, b: Sums): Sums {
	const sum = { ...a };

	for (const key of ADDED) sum[key] += b[key];
	for (const key of ERRORS) {
		if (sum[key] !== undefined) sum[key] = Math.hypot(sum[key], b[key] ?? 0);
	}
	return sum;
}

/* Only where a site is, without its sums; all members, as a site of several lines has none of its own. */
function placeOf(by: By, where: Where): Where {
	const exact = by === "stack" || by === "line";

	return {
		function: by === "library" ? null : (where.function ?? null),
		library: where.library ?? null,
		source: exact ? (where.source ?? null) : null,
		line: exact ? (where.line ?? 0) : 0,
	};
}

function keyOf(by: By, site: number, where: Where): string {
	if (by === "line") return String(site);
	return by === "library" ? `${where.library}` : `${where.function}\n${where.library}`;
}

/* The site of a stack is the line of its user frame. */
function rowOf(key: string, where: Where, sums: Sums, groups: readonly Group[]): Row {
	const [only] = groups;

	return {
		...sums,
		...where,
		key,
		first: Math.min(...groups.map((g) => seconds(g.min_timestamp_relative))),
		last: Math.max(...groups.map((g) => seconds(g.max_timestamp_relative))),
		shape: groups.length === 1 && only ? only.shape : null,
		groups: [...groups].sort((a, b) => b.size - a.size),
	};
}

export function rowsOf(r: Report, by: By): Row[] {
	if (by === "stack")
		return r.allocation_groups.map((g) =>
			rowOf(String(g.backtrace_id), placeOf(by, r.sites[g.site] ?? {}), g, [g]),
		);
	const together = new Map<string, { where: Where; groups: Group[]; sites: Set<number> }>();

	for (const g of r.allocation_groups) {
		const where = r.sites[g.site] ?? {};
		const key = keyOf(by, g.site, where);
		const found = together.get(key) ?? { where: placeOf(by, where), groups: [], sites: new Set() };

		found.groups.push(g);
		found.sites.add(g.site);
		together.set(key, found);
	}
	return [...together].map(([key, t]) => {
		const sums: Sums[] = [...t.sites].flatMap((s) => r.sites[s] ?? []);

		return rowOf(key, t.where, sums.reduce(add), t.groups);
	});
}

const texts = new WeakMap<Group, string>();

function textOf(g: Group): string {
	const text = texts.get(g) ?? g.backtrace.map(frameName).join("\n").toLowerCase();

	texts.set(g, text);
	return text;
}

/** The rows with a stack that has a function whose name contains @text, in any case. */
export function matching(rows: readonly Row[], text: string): readonly Row[] {
	const wanted = text.toLowerCase();

	return wanted === "" ? rows : rows.filter((r) => r.groups.some((g) => textOf(g).includes(wanted)));
}
