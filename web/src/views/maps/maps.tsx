import { useMemo } from "preact/hooks";
import type { Mapping, Maps as MapList, MapsTimeline } from "../../api";
import { useAnswer } from "../../answer";
import { base, bytes, count, seconds } from "../../format";
import { AddressSpace } from "./address_space";
import { useChosenRecording } from "../../parts/in_progress";
import { Choose } from "../../parts/choose";
import { hex, MappingDetail, permissions } from "../../parts/mapping";
import { Search } from "../../parts/search";
import { sortBy, sortChoice } from "../../parts/sorting";
import { Spark } from "../../parts/spark";
import { Empty, Shown } from "../../parts/states";
import { type Column, Table } from "../../parts/table";
import { choice, filters, go } from "../../state";

/* With the looks at each, more would be too much for one answer. */
const MOST = 1000;

const known = (n: number | null | undefined) => (n === null || n === undefined ? "–" : bytes(n));
const resident = (m: Mapping) => m.usage_history?.at(-1)?.rss;

const columns: readonly Column<Mapping>[] = [
	{
		key: "address",
		title: "Address",
		value: (m) => m.address_s,
		show: (m) => <code>{hex(m.address_s)}</code>,
	},
	{ key: "size", title: "Size", number: true, value: (m) => m.size, show: (m) => bytes(m.size) },
	{
		key: "permissions",
		title: "Permissions",
		about: "read, write, execute; p: private, s: shared, ?: not known",
		minor: true,
		value: permissions,
		show: (m) => <code>{permissions(m)}</code>,
	},
	{
		key: "name",
		title: "Name",
		value: (m) => m.name,
		show: (m) => <code title={m.name}>{base(m.name) || "anonymous"}</code>,
	},
	{
		key: "rss",
		title: "Resident",
		about: "at the last look",
		number: true,
		value: (m) => resident(m) ?? -1,
		show: (m) => known(resident(m)),
	},
	{
		key: "peak_rss",
		title: "Most resident",
		number: true,
		minor: true,
		value: (m) => m.peak_rss ?? -1,
		show: (m) => known(m.peak_rss),
	},
	{
		key: "history",
		title: "Over time",
		minor: true,
		unsorted: true,
		value: (m) => m.usage_history?.length ?? 0,
		show: (m) => {
			const values = (m.usage_history ?? []).map((u) => u.rss);

			if (values.length < 2) return "–";
			return (
				<Spark values={values} label={`Resident: first ${known(values[0])}, last ${known(values.at(-1))}`} />
			);
		},
	},
];

const HAS = ["readable", "writable", "executable"] as const;

const answers = [
	{ name: "all", title: "yes or no" },
	{ name: "only_true", title: "yes" },
	{ name: "only_false", title: "no" },
];

function Choices() {
	return (
		<div class="choices">
			<Search label="Name" />
			{HAS.map((name) => (
				<Choose
					key={name}
					name={name}
					label={`${name[0]?.toUpperCase()}${name.slice(1)}`}
					options={answers}
				/>
			))}
			<label class="search">
				<span>There at</span>
				<input
					value={choice("there_at")}
					placeholder="any time; 10s, 50%"
					onChange={(e) => go({ there_at: e.currentTarget.value || undefined })}
				/>
			</label>
		</div>
	);
}

/* Unix time in seconds at which the chosen recording began. */
function useStart(): number | undefined {
	const chosen = useChosenRecording();

	return chosen && seconds(chosen.timestamp);
}

function List({ answer, start }: { answer: MapList; start: number | undefined }) {
	const search = choice("search").toLowerCase();
	const rows = useMemo(
		() => answer.maps.filter((m) => m.name.toLowerCase().includes(search)),
		[answer, search],
	);

	return (
		<>
			<p role="status">
				{count(rows.length)} of {count(answer.total_count)} mappings
				{answer.total_count > answer.maps.length && `; only the ${count(MOST)} largest are looked through`}
			</p>
			{rows.length === 0 ? (
				<Empty>No mapping is like that.</Empty>
			) : (
				<Table
					caption="Mappings"
					columns={columns}
					rows={rows}
					rowKey={(m) => m.id}
					sort={sortChoice(columns, "rss")}
					onSort={sortBy}
					detail={(m) => <MappingDetail of={m} start={start} />}
				/>
			)}
		</>
	);
}

/** What the address space of the process consists of. */
export function Maps() {
	const start = useStart();
	const timeline = useAnswer<MapsTimeline>("timeline_maps");
	const maps = useAnswer<MapList>("maps", {
		with_usage_history: "true",
		sort_by: "size",
		order: "dsc",
		count: String(MOST),
		alive_at: choice("there_at") || undefined,
		...Object.fromEntries(HAS.map((name) => [name, choice(name) || undefined])),
	});

	return (
		<>
			{Object.keys(filters.value).length > 0 && (
				<p class="about">The filters above select allocations; here are all mappings.</p>
			)}
			<section class="card">
				<h2>The process's memory over time</h2>
				<Shown answer={timeline}>{(t) => <AddressSpace timeline={t} start={start} />}</Shown>
			</section>
			<h2 class="below">Mappings</h2>
			<Choices />
			<Shown answer={maps}>{(a) => <List answer={a} start={start} />}</Shown>
		</>
	);
}
