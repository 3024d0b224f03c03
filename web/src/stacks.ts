/* Call trees from the stacks of a report. */
import type { Frame, Group } from "./api";
import { base } from "./format";

export interface Cost {
	readonly name: string;
	readonly title: string;
	readonly isBytes: boolean;
	readonly of: (g: Group) => number;
}

/** The costs of memprof report --cost. */
export const costs: readonly [Cost, ...Cost[]] = [
	{ name: "live", title: "Live at the end", isBytes: true, of: (g) => g.leaked_bytes },
	{ name: "allocated", title: "Allocated", isBytes: true, of: (g) => g.size },
	{ name: "peak", title: "Live at the peak", isBytes: true, of: (g) => g.peak_bytes },
	{ name: "count", title: "Allocations", isBytes: false, of: (g) => g.allocated_count },
	{ name: "temporary", title: "Temporary allocations", isBytes: false, of: (g) => g.temporary_count },
	{ name: "mapped", title: "Mapped by the program", isBytes: true, of: (g) => g.map_bytes },
];

/** @name: as in a URL.  The first cost, if there is no such cost. */
export function costOf(name: string): Cost {
	return costs.find((c) => c.name === name) ?? costs[0];
}

export interface Node {
	readonly name: string;
	readonly value: number;
	/** What is not in a child. */
	readonly self: number;
	readonly library: string | null;
	readonly source: string | null;
	readonly line: number | null;
	/** The runtime's or the allocator's, as far as the report knows. */
	readonly runtime: boolean;
	readonly children: Node[];
}

interface Growing {
	name: string;
	value: number;
	self: number;
	frame: Frame | undefined;
	runtime: boolean;
	children: Map<string, Growing>;
}

export interface TreeOptions {
	/** Fold the runtime's frames, as reports do. */
	readonly fold: boolean;
	/** Innermost frames at the root. */
	readonly invert: boolean;
	/** Children by value, else by name. */
	readonly heavy: boolean;
}

export function frameName(f: Frame): string {
	return f.function ?? (f.library ? `${f.library} ${f.address_s}` : f.address_s);
}

/* Frames are the same if the function and its library are. */
const keyOf = (f: Frame): string => `${frameName(f)}\n${f.library ?? ""}`;

function grow(parent: Growing, f: Frame, runtime: boolean, value: number): Growing {
	const key = keyOf(f);
	let node = parent.children.get(key);

	if (!node) {
		node = { name: frameName(f), value: 0, self: 0, frame: f, runtime, children: new Map() };
		parent.children.set(key, node);
	}
	node.value += value;
	return node;
}

function finish(n: Growing, heavy: boolean): Node {
	const children = [...n.children.values()].map((c) => finish(c, heavy));

	children.sort((a, b) => (heavy ? b.value - a.value : 0) || (a.name < b.name ? -1 : 1));
	return {
		name: n.name,
		value: n.value,
		self: n.self,
		library: n.frame?.library ?? null,
		source: n.frame?.source ?? null,
		line: n.frame?.line ?? null,
		runtime: n.runtime,
		children,
	};
}

/** The frames of a group that are shown, outermost first. */
export function shownFrames(g: Group, fold: boolean): Frame[] {
	return fold ? g.backtrace.filter((f) => !f.folded) : g.backtrace;
}

/** The tree of all groups that have some of the cost; its root is the whole. */
export function treeOf(groups: readonly Group[], cost: Cost, options: TreeOptions): Node {
	const root: Growing = {
		name: "all",
		value: 0,
		self: 0,
		frame: undefined,
		runtime: false,
		children: new Map(),
	};

	for (const g of groups) {
		const value = cost.of(g);
		const user = g.user_frame === null ? undefined : g.backtrace[g.user_frame];

		if (value <= 0) continue;
		root.value += value;
		let node = root;
		const frames = shownFrames(g, options.fold);
		const inner = user ? frames.indexOf(user) : frames.length;
		const ordered = frames.map((f, i) => [f, i > inner] as const);

		for (const [f, runtime] of options.invert ? ordered.reverse() : ordered)
			node = grow(node, f, runtime, value);
		node.self += value;
	}
	return finish(root, options.heavy);
}

/** `library · file.c:12`, as far as it is known. */
export function nodePlace(n: { library: string | null; source: string | null; line: number | null }): string {
	const parts = [n.library, n.source ? `${base(n.source)}${n.line ? `:${n.line}` : ""}` : null];

	return parts.filter((p) => p !== null).join(" · ");
}
