import { useMemo } from "preact/hooks";
import type { Allocation, Group, SingleAllocations } from "../../api";
import { useFiltered, useReport } from "../../answer";
import { bytes, count, duration, seconds } from "../../format";
import { AllocationDetail, lifetime } from "./allocation";
import { groupsById, userFrame } from "../../parts/listed";
import { hex } from "../../parts/mapping";
import { pageChoice, Pages } from "./pages";
import { sortBy, sortChoice } from "../../parts/sorting";
import { PlaceLink } from "../../parts/stack";
import { Empty, Shown } from "../../parts/states";
import { type Column, Table } from "../../parts/table";
import { frameName } from "../../stacks";

const PAGE = 100;

/* Columns that sort have the server's names for that. */
const numbers: readonly Column<Allocation>[] = [
	{
		key: "timestamp",
		title: "Time",
		about: "since the start of the recording",
		number: true,
		value: (a) => seconds(a.timestamp_relative),
		show: (a) => duration(seconds(a.timestamp_relative)),
	},
	{
		key: "address",
		title: "Address",
		number: true,
		minor: true,
		value: (a) => a.address_s,
		show: (a) => <code>{hex(a.address_s)}</code>,
	},
	{ key: "size", title: "Size", number: true, value: (a) => a.size, show: (a) => bytes(a.size) },
	{
		key: "extra_space",
		title: "Unused",
		about: "usable bytes that were not requested",
		number: true,
		minor: true,
		unsorted: true,
		value: (a) => a.extra_space,
		show: (a) => bytes(a.extra_space),
	},
	{
		key: "lifetime",
		title: "Lifetime",
		number: true,
		value: (a) => lifetime(a) ?? "live",
		show: (a) => {
			const s = lifetime(a);

			return s === undefined ? "live at the end" : duration(s);
		},
	},
];

const represents: Column<Allocation> = {
	key: "represents",
	title: "Stands for",
	about: "allocations that the sample has this one for",
	number: true,
	unsorted: true,
	value: (a) => a.represents ?? 1,
	show: (a) => count(a.represents ?? 1),
};

/* @groups: of the report, which says which frame of a stack is the user's; undefined: it is not known yet. */
function texts(groups: ReadonlyMap<number, Group> | undefined): Column<Allocation>[] {
	const frame = (a: Allocation) => groups && userFrame(groups.get(a.backtrace_id), a.backtrace);
	const name = (a: Allocation) => {
		const f = frame(a);

		return f ? frameName(f) : groups ? "unknown" : "";
	};

	return [
		{
			key: "function",
			title: "Function",
			unsorted: true,
			value: name,
			show: (a) => {
				const f = frame(a);

				return (
					<>
						<code>{name(a)}</code>{" "}
						<span class="place">
							{f?.source ? <PlaceLink file={f.source} line={f.line} /> : (f?.library ?? "")}
						</span>
					</>
				);
			},
		},
		{ key: "thread", title: "Thread", number: true, minor: true, unsorted: true, value: (a) => a.thread },
		{
			key: "allocator",
			title: "Allocator",
			minor: true,
			unsorted: true,
			value: (a) => a.allocator,
			show: (a) => a.allocator.replaceAll("_", " "),
		},
	];
}

function List({ answer, sort }: { answer: SingleAllocations; sort: string }) {
	const report = useReport();
	const groups = useMemo(() => report.value && groupsById(report.value), [report.value]);
	const columns = useMemo(
		() => [...numbers, ...(answer.estimated ? [represents] : []), ...texts(groups)],
		[answer, groups],
	);
	const pages = (place: "above" | "below") => (
		<Pages total={answer.total_count} size={PAGE} what="allocations" place={place} />
	);

	return (
		<div aria-busy={report.loading}>
			{(answer.culled_count ?? 0) > 0 && (
				<p class="about">
					{count(answer.culled_count ?? 0)} short-lived blocks are not in the list: the recording has only
					their sums.
				</p>
			)}
			{answer.estimated && (
				<p class="about">The recording has a part of all allocations: each in the list stands for several.</p>
			)}
			{answer.total_count === 0 ? (
				<Empty>There is no single allocation that the filters let through.</Empty>
			) : (
				<>
					{pages("above")}
					<Table
						key={`${pageChoice()} ${sort}`}
						caption="Single allocations"
						columns={columns}
						rows={answer.allocations}
						rowKey={(a) => a.id}
						sort={sort}
						onSort={sortBy}
						page
						first={PAGE}
						detail={(a) => <AllocationDetail of={a} group={groups?.get(a.backtrace_id)} />}
					/>
					{pages("below")}
				</>
			)}
		</div>
	);
}

/** Each allocation, with when it was freed. */
export function Allocations() {
	const sort = sortChoice(
		numbers.filter((c) => !c.unsorted),
		"-timestamp",
	);
	const answer = useFiltered<SingleAllocations>("allocations", {
		skip: String((pageChoice() - 1) * PAGE),
		count: String(PAGE),
		sort_by: sort.replace(/^-/, ""),
		order: sort.startsWith("-") ? "asc" : "dsc",
	});

	return <Shown answer={answer}>{(a) => <List answer={a} sort={sort} />}</Shown>;
}
