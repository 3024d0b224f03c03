import type { Frame, LiveRow, LiveRows } from "../../api";
import { useAnswer } from "../../answer";
import { bytes, change, count, percent, sitePlace } from "../../format";
import { choice, go, replace } from "../../state";
import { Choose } from "../../parts/choose";
import { Stack } from "../../parts/stack";
import { Empty, Shown } from "../../parts/states";
import { type Column, Table } from "../../parts/table";

const MOST_ROWS = "50";

const nameOf = (r: LiveRow): string =>
	r.name ?? (r.thread === null ? (r.library ?? "unknown") : `thread ${r.thread}`);

/* The keys of columns are the server's words for sort_by. */
const columns: readonly Column<LiveRow>[] = [
	{
		key: "name",
		title: "Site",
		value: nameOf,
		show: (r) => (
			<>
				<code>{nameOf(r)}</code>{" "}
				<span class="place">
					{r.thread !== null && r.name !== null
						? `thread ${r.thread}`
						: sitePlace({ source: r.source, library: r.library, ...(r.line !== null && { line: r.line }) })}
				</span>
			</>
		),
	},
	{
		key: "live",
		title: "Live",
		value: (r) => r.live_bytes ?? 0,
		show: (r) => (r.live_bytes === undefined ? "–" : bytes(r.live_bytes)),
		number: true,
	},
	{
		key: "growth",
		title: "Growth/s",
		value: (r) => r.growth_per_second ?? 0,
		show: (r) => (r.growth_per_second === undefined ? "–" : change(r.growth_per_second)),
		number: true,
	},
	{
		key: "blocks",
		title: "Blocks",
		value: (r) => r.live_blocks ?? 0,
		show: (r) => (r.live_blocks === undefined ? "–" : count(r.live_blocks)),
		number: true,
		minor: true,
	},
	{
		key: "allocations",
		title: "Allocations/s",
		value: (r) => r.allocations_per_second,
		show: (r) => count(r.allocations_per_second),
		number: true,
		minor: true,
	},
	{
		key: "allocated",
		title: "Allocated/s",
		value: (r) => r.allocated_bytes_per_second,
		show: (r) => bytes(r.allocated_bytes_per_second),
		number: true,
		minor: true,
	},
	{
		key: "temporary",
		title: "Temporary",
		about: "part of the allocations that were freed before the next one of the thread",
		value: (r) => r.temporary_share ?? 0,
		show: (r) => (r.temporary_share === null ? "–" : percent(r.temporary_share, 1)),
		number: true,
		minor: true,
	},
];

/* The server leaves out a function's name that is the raw one. */
const framesOf = (r: LiveRow): Frame[] =>
	(r.backtrace ?? []).map((f) => ({ ...f, function: f.function ?? f.raw_function ?? null }));

function keyOf(r: LiveRow, by: string): string {
	return [r.name, r.library, r.source, r.line, r.thread, by === "stack" && r.backtrace_id].join("\n");
}

/** What allocates now, as memprof top shows it.  @tick: asked again when it changes. */
export function LiveTable({ tick }: { tick: number }) {
	const by = choice("live_by", "line");
	const sort = choice("live_sort", "live");
	const match = choice("live_match");
	const key = sort.replace(/^-/, "");
	const groups = useAnswer<LiveRows>(
		"live/groups",
		{
			by,
			sort_by: key,
			/* Names in the order of the alphabet, numbers with the largest first. */
			order: sort.startsWith("-") === (key === "name") ? "dsc" : "asc",
			filter: match || undefined,
			count: MOST_ROWS,
		},
		tick,
	);

	return (
		<section class="card wide live">
			<h2>What allocates</h2>
			<div class="choices">
				<Choose
					name="live_by"
					label="A row is"
					options={[
						{ name: "line", title: "a line" },
						{ name: "function", title: "a function" },
						{ name: "library", title: "a library" },
						{ name: "thread", title: "a thread" },
						{ name: "stack", title: "a stack" },
					]}
				/>
				<label class="search">
					<span>Only what matches</span>
					<input
						type="search"
						value={match}
						placeholder="regular expression"
						onInput={(e) => replace({ live_match: e.currentTarget.value || undefined })}
					/>
				</label>
			</div>
			<Shown answer={{ ...groups, loading: false }}>
				{(g) =>
					g.rows.length === 0 ? (
						<Empty>Nothing.</Empty>
					) : (
						<Table
							caption="What allocates"
							columns={columns}
							rows={g.rows}
							rowKey={(r) => keyOf(r, by)}
							sort={sort}
							onSort={(to) => go({ live_sort: to })}
							detail={(r) => <Stack frames={framesOf(r)} />}
						/>
					)
				}
			</Shown>
		</section>
	);
}
