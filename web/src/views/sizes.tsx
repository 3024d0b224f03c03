import type { Sizes as Answer } from "../api";
import { useSizes } from "../answer";
import { bytes, count, percent } from "../format";
import { Choose } from "../parts/choose";
import { Empty, Shown } from "../parts/states";
import { allocated, allocations, live, liveBlocks, temporary } from "../parts/sum_columns";
import { type Column, Table } from "../parts/table";
import { choice, go, linkTo, source } from "../state";

type Row = Answer["sizes"][number];

const costs = [
	{ name: "count", title: "Allocations", of: (r: Row) => r.allocated_count, show: count },
	{ name: "bytes", title: "Allocated bytes", of: (r: Row) => r.size, show: bytes },
	{ name: "live", title: "Live bytes at the end", of: (r: Row) => r.leaked_size, show: bytes },
] as const;

const exact = (n: number): string =>
	n % 1024 === 0 && n > 0 ? bytes(n).replace(/\.0+ /, " ") : `${count(n)} B`;

const rangeOf = (r: Row): string =>
	r.size_min === r.size_max ? exact(r.size_min) : `${exact(r.size_min)} to ${exact(r.size_max)}`;

function Size({ row }: { row: Row }) {
	if (source().kind === "file") return <>{rangeOf(row)}</>;
	return (
		<a
			href={linkTo({ size_min: String(row.size_min), size_max: String(row.size_max) }, "flame")}
			title="Only blocks of this size, in the flame graph"
		>
			{rangeOf(row)}
		</a>
	);
}

const sums: readonly Column<Row>[] = [allocations, allocated("bytes"), live, liveBlocks, temporary];

function Histogram({ answer }: { answer: Answer }) {
	const cost = costs.find((c) => c.name === choice("sizes_cost")) ?? costs[0];
	const all = answer.sizes.reduce((sum, r) => sum + cost.of(r), 0);
	const most = Math.max(1, ...answer.sizes.map(cost.of));
	const columns: Column<Row>[] = [
		/* Size classes from the smallest: against the order of numbers. */
		{ key: "size", title: "Size", value: (r) => r.size_min, show: (r) => <Size row={r} />, number: true },
		{
			key: "share",
			title: `Share of ${cost.title.toLowerCase()}`,
			about: "as a bar: the longest is the largest",
			value: cost.of,
			show: (r) => (
				<span class="measure">
					<span class="bar" style={{ "--share": cost.of(r) / most }} />
					<span>{percent(cost.of(r), all)}</span>
				</span>
			),
			number: true,
		},
		...sums,
	];

	if (answer.sizes.length === 0) return <Empty>There are no allocations.</Empty>;
	return (
		<Table
			caption="Sizes of blocks"
			columns={columns}
			rows={answer.sizes}
			rowKey={(r) => r.size_min}
			sort={choice("sizes_sort", "-size")}
			onSort={(key) => go({ sizes_sort: key })}
		/>
	);
}

/** How large blocks are: a histogram of size classes. */
export function Sizes() {
	return (
		<>
			<div class="choices">
				<Choose name="sizes_cost" label="Bars show" options={costs} />
			</div>
			<Shown answer={useSizes()}>{(answer) => <Histogram answer={answer} />}</Shown>
		</>
	);
}
