import { useMemo, useState } from "preact/hooks";
import type { Diff, DiffGroup } from "../../api";
import { choice } from "../../state";
import { changeColour, type DiffNode, diffTree } from "./tree";
import { FlameChart } from "../../parts/flame_chart";
import { Empty } from "../../parts/states";

const WIDTHS: Record<string, (g: DiffGroup) => number> = {
	after: (g) => g.after,
	before: (g) => g.before,
	larger: (g) => Math.max(g.before, g.after),
};

interface Props {
	diff: Diff;
	show: (n: number) => string;
	signed: (n: number) => string;
}

/** A flame graph whose colours and labels say what changed. */
export function DiffGraph({ diff, show, signed }: Props) {
	const [frame, setFrame] = useState<DiffNode>();
	const width = choice("diff_width", "after");
	const tree = useMemo(
		() => diffTree(diff.groups, WIDTHS[width] ?? ((g) => g.after), signed),
		[diff, width, signed],
	);
	const describe = (n: DiffNode) =>
		`${n.name}${n.place && ` (${n.place})`}: ${show(n.before)} before, ${show(n.after)} after`;

	if (tree.value === 0) return <Empty>Nothing to draw: this side has nothing.</Empty>;
	return (
		<>
			<ul class="legend">
				{[
					{ text: "red, +: more than before", before: 0, after: 1 },
					{ text: "blue, −: less", before: 1, after: 0 },
					{ text: "grey: as before", before: 1, after: 1 },
				].map((l) => (
					<li key={l.text}>
						<span class="swatch" style={{ "--swatch": changeColour(l) }} />
						{l.text}
					</li>
				))}
			</ul>
			<FlameChart
				tree={tree}
				colour={changeColour}
				describe={describe}
				search=""
				icicle
				label={`Flame graph of the change, ${signed(tree.after - tree.before)} in all; the table has the same as text`}
				onFrame={setFrame}
			/>
			<p class="chosen" role="status">
				{describe(frame ?? tree)}
			</p>
		</>
	);
}
