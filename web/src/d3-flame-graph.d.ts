/* The parts of d3-flame-graph 5 that the page uses; the package has no types. */
declare module "d3-flame-graph" {
	import type { Selection } from "d3-selection";

	interface Cell<Datum> {
		data: Datum;
		value: number;
		highlight?: boolean;
	}

	interface FlameGraph<Datum> {
		(selection: Selection<HTMLDivElement, Datum, null, undefined>): void;
		width(pixels: number): this;
		height(pixels: number): this;
		cellHeight(pixels: number): this;
		minFrameSize(pixels: number): this;
		transitionDuration(ms: number): this;
		inverted(yes: boolean): this;
		sort(yes: boolean): this;
		selfValue(yes: boolean): this;
		label(text: (d: Cell<Datum>) => string): this;
		onClick(clicked: (d: Cell<Datum>) => void): this;
		setColorMapper(map: (d: Cell<Datum>, original: string) => string): this;
		setSearchMatch(matches: (d: Cell<Datum>, term: string) => boolean): this;
		search(term: string): void;
		clear(): void;
		resetZoom(): void;
		destroy(): void;
	}

	export default function flamegraph<Datum>(): FlameGraph<Datum>;
	export type { FlameGraph };
}
