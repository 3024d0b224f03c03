import type { DiffFrame, DiffGroup } from "../../api";
import { base } from "../../format";

export interface DiffNode {
	readonly name: string;
	readonly value: number;
	readonly before: number;
	readonly after: number;
	readonly place: string;
	readonly children: DiffNode[];
}

interface Growing {
	name: string;
	place: string;
	before: number;
	after: number;
	width: number;
	children: Map<string, Growing>;
}

const placeOf = (f: DiffFrame): string =>
	[f.library, f.source && `${base(f.source)}${f.line ? `:${f.line}` : ""}`].filter(Boolean).join(" · ");

function childOf(parent: Growing, f: DiffFrame): Growing {
	const key = `${f.function}\n${f.library ?? ""}`;
	let node = parent.children.get(key);

	if (!node) {
		node = { name: f.function, place: placeOf(f), before: 0, after: 0, width: 0, children: new Map() };
		parent.children.set(key, node);
	}
	return node;
}

function finish(n: Growing, signed: (change: number) => string): DiffNode {
	const children = [...n.children.values()].filter((c) => c.width > 0).sort((a, b) => b.width - a.width);

	return {
		/* Not by colour alone. */
		name: `${n.name} ${signed(n.after - n.before)}`,
		value: n.width,
		before: n.before,
		after: n.after,
		place: n.place,
		children: children.map((c) => finish(c, signed)),
	};
}

/** @widthOf: of a stack.  @signed: a change as text. */
export function diffTree(
	groups: readonly DiffGroup[],
	widthOf: (g: DiffGroup) => number,
	signed: (change: number) => string,
): DiffNode {
	const root: Growing = { name: "all", place: "", before: 0, after: 0, width: 0, children: new Map() };

	for (const g of groups) {
		let node = root;

		for (const f of [undefined, ...g.backtrace]) {
			if (f) node = childOf(node, f);
			node.before += g.before;
			node.after += g.after;
			node.width += widthOf(g);
		}
	}
	return finish(root, signed);
}

/** Red: grew, blue: shrank, grey: as before; the stronger the larger the part of it that changed. */
export function changeColour(n: { before: number; after: number }): string {
	const most = Math.max(n.before, n.after);
	const part = most > 0 ? (n.after - n.before) / most : 0;

	if (part === 0) return "var(--flame-runtime)";
	return `hsl(${part > 0 ? 8 : 212} 85% ${86 - 22 * Math.abs(part)}%)`;
}
