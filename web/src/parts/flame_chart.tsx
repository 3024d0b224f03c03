import { useEffect, useRef } from "preact/hooks";
import flamegraph, { type FlameGraph } from "d3-flame-graph";
import { select } from "d3-selection";

const CELL = 20;

/** A frame with all that it called. */
export interface FlameNode<N> {
	readonly name: string;
	/** Its width. */
	readonly value: number;
	readonly children: readonly N[];
}

interface Props<N> {
	tree: N;
	colour: (n: N) => string;
	describe: (n: N) => string;
	search: string;
	icicle: boolean;
	/** What a screen reader says. */
	label: string;
	onFrame: (n: N) => void;
}

function depthOf<N extends FlameNode<N>>(n: N): number {
	return 1 + n.children.reduce((most, c) => Math.max(most, depthOf(c)), 0);
}

/** A tree of frames; a click on one makes it as wide as the graph. */
export function FlameChart<N extends FlameNode<N>>(p: Props<N>) {
	const at = useRef<HTMLDivElement>(null);
	const chart = useRef<FlameGraph<N> | null>(null);
	const latest = useRef(p);
	const { tree, icicle, search } = p;

	latest.current = p;
	useEffect(() => {
		const box = at.current;

		if (!box) return undefined;
		const draw = () => {
			select(box).selectAll("*").remove();
			const made = flamegraph<N>()
				.width(box.clientWidth)
				.height((depthOf(tree) + 1) * CELL)
				.cellHeight(CELL)
				.minFrameSize(1)
				.transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200)
				.inverted(icicle)
				.sort(false)
				.selfValue(false)
				.setColorMapper((d, original) => (d.highlight ? original : latest.current.colour(d.data)))
				.setSearchMatch((d, term) => d.data.name.toLowerCase().includes(term.toLowerCase()))
				.label((d) => latest.current.describe(d.data))
				.onClick((d) => latest.current.onFrame(d.data));

			chart.current = made;
			select(box).datum(tree).call(made);
		};
		let width = box.clientWidth;
		const resized = new ResizeObserver(() => {
			if (box.clientWidth !== width) draw();
			width = box.clientWidth;
		});

		draw();
		resized.observe(box);
		return () => {
			resized.disconnect();
			chart.current?.destroy();
		};
	}, [tree, icicle]);
	useEffect(() => {
		if (search) chart.current?.search(search);
		else chart.current?.clear();
	}, [search, tree, icicle]);
	return <div ref={at} class="flame" role="img" aria-label={p.label} />;
}
