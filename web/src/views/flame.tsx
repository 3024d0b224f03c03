import { useState } from "preact/hooks";
import type { Report } from "../api";
import { useReport } from "../answer";
import { bytes, count, percent } from "../format";
import { Choose } from "../parts/choose";
import { FlameChart } from "../parts/flame_chart";
import { PlaceLink } from "../parts/stack";
import { Empty, Shown } from "../parts/states";
import { TreeChoices, useTree } from "../parts/tree_choices";
import { type Cost, type Node, nodePlace } from "../stacks";
import { choice } from "../state";

/* Frames of one library have one hue; frames of the runtime are grey. */
function colourOf(n: Node): string {
	let hash = 0;

	if (n.runtime) return "var(--flame-runtime)";
	for (const c of n.library ?? n.name) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
	return `hsl(${hash % 60} ${60 + (hash % 7) * 4}% var(--flame-light))`;
}

function Chosen({ node, all, cost }: { node: Node; all: number; cost: Cost }) {
	const show = cost.isBytes ? bytes : count;

	return (
		<p class="chosen" role="status">
			<code>{node.name}</code>{" "}
			{node.source ? <PlaceLink file={node.source} line={node.line} /> : node.library}{" "}
			<strong>{show(node.value)}</strong> ({percent(node.value, all)}), {show(node.self)} of it directly
		</p>
	);
}

function Graph({ report }: { report: Report }) {
	const [frame, setFrame] = useState<Node>();
	const { tree, cost } = useTree(report);
	const show = cost.isBytes ? bytes : count;

	if (tree.value === 0) return <Empty>Nothing to show: {cost.title.toLowerCase()} is 0.</Empty>;
	return (
		<>
			<Chosen node={frame ?? tree} all={tree.value} cost={cost} />
			<FlameChart
				tree={tree}
				colour={colourOf}
				describe={(n) => `${n.name} (${nodePlace(n)}): ${show(n.value)}, ${percent(n.value, tree.value)}`}
				search={choice("search")}
				icicle={choice("form") !== "flame"}
				label={`Flame graph of ${show(tree.value)}; the call tree has the same as text`}
				onFrame={setFrame}
			/>
		</>
	);
}

/** Where memory comes from: width is the cost of a frame with all that it called. */
export function Flame() {
	return (
		<>
			<TreeChoices label="Width">
				<Choose
					name="form"
					label="Form"
					options={[
						{ name: "icicle", title: "Icicle: callers on top" },
						{ name: "flame", title: "Flames: callers below" },
					]}
				/>
			</TreeChoices>
			<Shown answer={useReport()}>{(r) => <Graph report={r} />}</Shown>
		</>
	);
}
