/* Which nodes of a call tree are open, and the rows that follow from it. */
import type { Node } from "../../stacks";

export interface Row {
	readonly node: Node;
	/** 1: the root. */
	readonly level: number;
	/** Among its siblings, from 1 on. */
	readonly position: number;
	readonly siblings: number;
	/** Index of the parent's row; -1: none. */
	readonly parent: number;
}

/** The nodes on the path of heaviest children, as far as each has over half of its parent. */
export function heaviestPath(root: Node): Set<Node> {
	const path = new Set<Node>();
	let node: Node | undefined = root;

	while (node) {
		const half: number = node.value / 2;

		path.add(node);
		node = node.children.find((c) => c.value > half);
	}
	return path;
}

/** The rows of the open part of a tree, from the root down. */
export function openRows(root: Node, open: ReadonlySet<Node>): Row[] {
	const rows: Row[] = [];
	const add = (node: Node, level: number, position: number, siblings: number, parent: number) => {
		const here = rows.push({ node, level, position, siblings, parent }) - 1;

		if (open.has(node))
			for (const [i, c] of node.children.entries()) add(c, level + 1, i + 1, node.children.length, here);
	};

	add(root, 1, 1, 1, -1);
	return rows;
}

export interface Found {
	readonly count: number;
	/** The cost of stacks with a node that was found. */
	readonly value: number;
	/** All nodes above those that were found. */
	readonly above: ReadonlySet<Node>;
}

export function isFound(n: Node, text: string): boolean {
	return text !== "" && n.name.toLowerCase().includes(text.toLowerCase());
}

/** The nodes below the root whose name contains @text, in any case. */
export function find(root: Node, text: string): Found {
	const above = new Set<Node>();
	let count = 0;
	let value = 0;
	const look = (n: Node, counted: boolean): boolean => {
		let any = false;

		for (const c of n.children) {
			const found = isFound(c, text);

			count += found ? 1 : 0;
			value += found && !counted ? c.value : 0;
			any = look(c, counted || found) || found || any;
		}
		if (any) above.add(n);
		return any;
	};

	look(root, false);
	return { count, value, above };
}
