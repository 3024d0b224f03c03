import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { base, bytes, count, percent } from "../../format";
import { type Cost, type Node, nodePlace } from "../../stacks";
import { isFound, openRows, type Row } from "./open_nodes";
import { PlaceLink } from "../../parts/stack";

function Name({ text, search }: { text: string; search: string }) {
	const at = search === "" ? -1 : text.toLowerCase().indexOf(search.toLowerCase());

	if (at < 0) return <code>{text}</code>;
	return (
		<code>
			{text.slice(0, at)}
			<mark>{text.slice(at, at + search.length)}</mark>
			{text.slice(at + search.length)}
		</code>
	);
}

function Place({ node }: { node: Node }) {
	if (!node.source) return <>{nodePlace(node)}</>;
	return (
		<>
			{node.library && `${base(node.library)} · `}
			<PlaceLink file={node.source} line={node.line} />
		</>
	);
}

interface RowProps {
	row: Row;
	all: number;
	cost: Cost;
	search: string;
	isOpen: boolean;
	isCurrent: boolean;
	onToggle: () => void;
	onFocus: () => void;
}

function TreeRow({ row, all, cost, search, isOpen, isCurrent, onToggle, onFocus }: RowProps) {
	const { node } = row;
	const show = cost.isBytes ? bytes : count;
	const inner = node.children.length > 0;

	return (
		<tr
			role="row"
			aria-level={row.level}
			aria-posinset={row.position}
			aria-setsize={row.siblings}
			aria-expanded={inner ? isOpen : undefined}
			tabIndex={isCurrent ? 0 : -1}
			class={isFound(node, search) ? "found" : undefined}
			onFocus={onFocus}
			onClick={inner ? onToggle : undefined}
		>
			<td role="gridcell" class="number" data-value={node.value}>
				{show(node.value)}
			</td>
			<td role="gridcell" class="number share">
				{percent(node.value, all)}
				<span class="bar" style={{ "--share": all > 0 ? node.value / all : 0 }} />
			</td>
			<td role="gridcell" class="number minor" data-value={node.self}>
				{show(node.self)}
			</td>
			<td role="gridcell" class="text branch" style={{ "--level": row.level - 1 }}>
				<span class="arrow" aria-hidden="true">
					{inner ? (isOpen ? "▾" : "▸") : ""}
				</span>
				<Name text={node.name} search={search} />
			</td>
			<td role="gridcell" class="place minor">
				<Place node={node} />
			</td>
		</tr>
	);
}

interface Props {
	tree: Node;
	cost: Cost;
	search: string;
	open: ReadonlySet<Node>;
	onOpen: (open: ReadonlySet<Node>) => void;
}

/** A tree as a table: arrow keys move in it, open and close.  Rows exist when their parent is open. */
export function TreeTable({ tree, cost, search, open, onOpen }: Props) {
	const [current, setCurrent] = useState(tree);
	const body = useRef<HTMLTableSectionElement>(null);
	const moved = useRef(false);
	const rows = useMemo(() => openRows(tree, open), [tree, open]);
	const at = Math.max(
		0,
		rows.findIndex((r) => r.node === current),
	);

	useEffect(() => {
		if (moved.current) body.current?.querySelectorAll("tr").item(at).focus();
		moved.current = false;
	}, [at]);
	const toggle = (n: Node) => {
		const next = new Set(open);

		if (!next.delete(n)) next.add(n);
		onOpen(next);
	};
	const moveTo = (index: number) => {
		const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];

		if (!row || row.node === current) return;
		moved.current = true;
		setCurrent(row.node);
	};
	const right = ({ node }: Row) => {
		if (open.has(node)) moveTo(node.children.length > 0 ? at + 1 : at);
		else if (node.children.length > 0) toggle(node);
	};
	const left = ({ node, parent }: Row) => {
		if (open.has(node) && node.children.length > 0) toggle(node);
		else if (parent >= 0) moveTo(parent);
	};
	const keys: Record<string, (row: Row) => void> = {
		ArrowDown: () => moveTo(at + 1),
		ArrowUp: () => moveTo(at - 1),
		ArrowRight: right,
		ArrowLeft: left,
		Home: () => moveTo(0),
		End: () => moveTo(rows.length - 1),
		Enter: ({ node }) => node.children.length > 0 && toggle(node),
	};
	const pressed = (e: KeyboardEvent) => {
		const row = rows[at];
		const act = keys[e.key];
		const inLink = e.target instanceof HTMLAnchorElement && e.key === "Enter";

		if (!row || !act || inLink || e.ctrlKey || e.altKey || e.metaKey) return;
		e.preventDefault();
		act(row);
	};

	return (
		<div
			class="scroll"
			role="treegrid"
			tabIndex={-1}
			aria-label={`Call tree: ${cost.title.toLowerCase()}`}
			onKeyDown={pressed}
		>
			<table role="presentation">
				<thead>
					<tr role="row">
						<th role="columnheader" class="number">
							{cost.title}
						</th>
						<th role="columnheader" class="number">
							Share
						</th>
						<th role="columnheader" class="number minor">
							Directly
						</th>
						<th role="columnheader">Function</th>
						<th role="columnheader" class="minor">
							Place
						</th>
					</tr>
				</thead>
				<tbody ref={body}>
					{rows.map((row, i) => (
						<TreeRow
							key={`${row.parent} ${row.position} ${row.node.name}`}
							row={row}
							all={tree.value}
							cost={cost}
							search={search}
							isOpen={open.has(row.node)}
							isCurrent={i === at}
							onToggle={() => toggle(row.node)}
							onFocus={() => setCurrent(row.node)}
						/>
					))}
				</tbody>
			</table>
		</div>
	);
}
