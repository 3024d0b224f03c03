import { useMemo, useState } from "preact/hooks";
import type { Report } from "../../api";
import { useReport } from "../../answer";
import { bytes, count, percent } from "../../format";
import { find, type Found, heaviestPath } from "./open_nodes";
import { Empty, Shown } from "../../parts/states";
import { TreeChoices, useTree } from "../../parts/tree_choices";
import { TreeTable } from "./table";
import { type Cost, type Node } from "../../stacks";
import { choice } from "../../state";

function FoundSums({
	found,
	tree,
	cost,
	onShow,
}: {
	found: Found;
	tree: Node;
	cost: Cost;
	onShow: () => void;
}) {
	const show = cost.isBytes ? bytes : count;

	return (
		<p role="status" class="found-sums">
			Found in {count(found.count)} places of the tree: {show(found.value)} (
			{percent(found.value, tree.value)}) go through them.{" "}
			{found.count > 0 && (
				<button type="button" onClick={onShow}>
					Open them
				</button>
			)}
		</p>
	);
}

function Branches({ tree, cost }: { tree: Node; cost: Cost }) {
	const atFirst = useMemo(() => heaviestPath(tree), [tree]);
	const [chosen, setChosen] = useState<{ tree: Node; open: ReadonlySet<Node> }>();
	/* Another tree has other nodes. */
	const open = chosen?.tree === tree ? chosen.open : atFirst;
	const setOpen = (nodes: ReadonlySet<Node>) => setChosen({ tree, open: nodes });
	const search = choice("search");
	const found = useMemo(() => (search === "" ? undefined : find(tree, search)), [tree, search]);

	return (
		<>
			{found && (
				<FoundSums
					found={found}
					tree={tree}
					cost={cost}
					onShow={() => setOpen(new Set([...open, ...found.above]))}
				/>
			)}
			<TreeTable tree={tree} cost={cost} search={search} open={open} onOpen={setOpen} />
		</>
	);
}

function Calls({ report }: { report: Report }) {
	const { tree, cost } = useTree(report);

	if (tree.value === 0) return <Empty>Nothing to show: {cost.title.toLowerCase()} is 0.</Empty>;
	return <Branches tree={tree} cost={cost} />;
}

/** Who calls whom, with what each call costs, as text. */
export function Tree() {
	return (
		<>
			<TreeChoices label="Cost" />
			<Shown answer={useReport()}>{(r) => <Calls report={r} />}</Shown>
		</>
	);
}
