import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { duration } from "../format";

export interface Line {
	readonly title: string;
	/** A custom property of style.css, as `--line-1`. */
	readonly colour: string;
	readonly values: readonly (number | null)[];
	readonly filled?: boolean;
	readonly dashed?: boolean;
}

interface Props {
	/** Seconds, ascending. */
	xs: readonly number[];
	lines: readonly Line[];
	show: (value: number) => string;
	/** What a screen reader says. */
	label: string;
	height?: number;
	/** The part of the x axis that is marked, in seconds. */
	marked?: readonly [number, number] | undefined;
	onBrush?: (from: number, to: number) => void;
	/** Vertical lines with a name. */
	marks?: readonly { at: number; name: string }[];
}

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/* The distances between lines of the axis of values, ascending, so that bytes have round numbers. */
const GRID = Array.from({ length: 50 }, (_, e) => 2 ** e);

/* uPlot has null for the legend while the cursor is elsewhere, against its types. */
const shown = (v: number | null, show: (n: number) => string): string => (v === null ? "–" : show(v));

function drawMarks(u: uPlot, marks: Props["marks"]): void {
	u.ctx.save();
	u.ctx.strokeStyle = u.ctx.fillStyle = colour("--text");
	u.ctx.font = `${11 * devicePixelRatio}px sans-serif`;
	u.ctx.setLineDash([4, 4]);
	for (const m of marks ?? []) {
		const x = u.valToPos(m.at, "x", true);

		if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
		u.ctx.beginPath();
		u.ctx.moveTo(x, u.bbox.top);
		u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
		u.ctx.stroke();
		u.ctx.fillText(m.name, x + 4, u.bbox.top + 12 * devicePixelRatio);
	}
	u.ctx.restore();
}

function seriesOf(l: Line, show: Props["show"]): uPlot.Series {
	return {
		label: l.title,
		stroke: colour(l.colour),
		width: 1.5,
		...(l.filled && { fill: `${colour(l.colour)}33` }),
		...(l.dashed && { dash: [6, 4] }),
		value: (_u, v) => shown(v, show),
		points: { show: false },
	};
}

/** Lines over time.  Dragging over it selects a part of the time. */
export function Plot(p: Props) {
	const at = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const latest = useRef(p);
	const titles = p.lines.map((l) => l.title).join("\n");

	latest.current = p;
	useEffect(() => {
		const box = at.current;

		if (!box) return undefined;
		const make = () => {
			const now = latest.current;

			plot.current?.destroy();
			plot.current = new uPlot(
				{
					width: box.clientWidth,
					height: now.height ?? 240,
					/* Filled lines are areas: they begin at 0. */
					scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, Math.max(1, 1.05 * max)] } },
					legend: { live: true },
					cursor: { drag: { x: now.onBrush !== undefined, y: false, setScale: false } },
					series: [
						{ label: "Time", value: (_u, v) => shown(v, duration) },
						...now.lines.map((l) => seriesOf(l, now.show)),
					],
					axes: [
						{
							stroke: colour("--text"),
							grid: { stroke: colour("--rule") },
							values: (_u, v) => v.map((s) => duration(s)),
						},
						{
							stroke: colour("--text"),
							grid: { stroke: colour("--rule") },
							size: 78,
							incrs: GRID,
							values: (_u, v) => v.map((n) => now.show(n)),
						},
					],
					hooks: {
						/* Only then there are positions. */
						ready: [(u) => mark(u, latest.current.marked)],
						draw: [(u) => drawMarks(u, latest.current.marks)],
						setSelect: [
							(u) => {
								if (u.select.width < 4) return;
								const from = u.posToVal(u.select.left, "x");
								const to = u.posToVal(u.select.left + u.select.width, "x");

								latest.current.onBrush?.(from, to);
							},
						],
					},
				},
				dataOf(now),
				box,
			);
		};
		const resized = new ResizeObserver(() =>
			plot.current?.setSize({ width: box.clientWidth, height: latest.current.height ?? 240 }),
		);
		const scheme = matchMedia("(prefers-color-scheme: dark)");

		make();
		resized.observe(box);
		scheme.addEventListener("change", make);
		return () => {
			resized.disconnect();
			scheme.removeEventListener("change", make);
			plot.current?.destroy();
			plot.current = null;
		};
		/* Other lines need another plot; other values do not. */
	}, [titles]);
	useEffect(() => {
		plot.current?.setData(dataOf(latest.current));
	}, [p.xs, p.lines]);
	useEffect(() => {
		if (plot.current) mark(plot.current, p.marked);
	}, [p.marked]);
	return <div ref={at} class="plot" role="img" aria-label={p.label} />;
}

function dataOf(p: Props): uPlot.AlignedData {
	return [[...p.xs], ...p.lines.map((l) => [...l.values])] as uPlot.AlignedData;
}

function mark(u: uPlot, marked: readonly [number, number] | undefined): void {
	if (!marked) {
		u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
		return;
	}
	const left = u.valToPos(marked[0], "x");
	const right = u.valToPos(marked[1], "x");

	u.setSelect({ left, top: 0, width: right - left, height: u.over.clientHeight }, false);
}
