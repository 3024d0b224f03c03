import type { Keeper, Retained } from "../../api";
import { base, bytes, count, duration, percent, sitePlace } from "../../format";
import { choice, go } from "../../state";
import { useCommand } from "../../parts/command";
import { type Column, Table } from "../../parts/table";
import { Taken, Unsure } from "../../parts/taken";

const MOST_LEVELS = 8;
const MOST_CHILDREN = 10;

/* As memprof heap --retained names its lines. */
function nameOf(k: Keeper): string {
	const name = k.name ?? k.kind;

	if (k.kind === "rest") return `${count(k.count)} smaller`;
	if (k.kind === "shared") return `shared by ${name}`;
	if (k.kind !== "blocks") return name;
	if (k.count === 1) return `${name} of ${bytes(k.own_bytes)}`;
	return `${count(k.count)} × ${name}${k.size > 0 ? ` of ${bytes(k.size)}` : ""}`;
}

function aboutOf(k: Keeper): string {
	const parts = [
		k.type,
		k.container && `${k.container.type}: ${count(k.container.elements)} elements`,
		k.module && base(k.module),
		k.source && sitePlace(k),
		k.roots > 1 && `reached from ${count(k.roots)} roots: ${k.root_names.join(", ")}`,
		k.allocated_at && `allocated at ${k.allocated_at.function} ${sitePlace(k.allocated_at)}`,
	];

	return parts.filter(Boolean).join(" · ");
}

const exactness = (k: Keeper): string => percent(k.exact_bytes, k.retained_bytes);

const columns: readonly Column<Keeper>[] = [
	{
		key: "retained",
		title: "Retained",
		about: "bytes of all blocks that could not be reached without it",
		value: (k) => k.retained_bytes,
		show: (k) => bytes(k.retained_bytes),
		number: true,
	},
	{
		key: "blocks",
		title: "Blocks",
		value: (k) => k.retained_blocks,
		show: (k) => count(k.retained_blocks),
		number: true,
	},
	{
		key: "exact",
		title: "Exact",
		about: "the part that is certain",
		value: (k) => (k.retained_bytes > 0 ? k.exact_bytes / k.retained_bytes : 0),
		show: exactness,
		number: true,
		minor: true,
	},
	{
		key: "name",
		title: "Kept by",
		value: nameOf,
		show: (k) => (
			<>
				<code>{nameOf(k)}</code> <span class="place">{aboutOf(k)}</span>
			</>
		),
	},
];

function Kept({ children, level }: { children: readonly Keeper[]; level: number }) {
	const left = children.length - MOST_CHILDREN;

	return (
		<ul class="kept">
			{children.slice(0, MOST_CHILDREN).map((k, i) => (
				<li key={i}>
					<strong>{bytes(k.retained_bytes)}</strong> <code>{nameOf(k)}</code>{" "}
					<span class="place">{aboutOf(k)}</span>
					{k.children.length > 0 && level < MOST_LEVELS && <Kept children={k.children} level={level + 1} />}
				</li>
			))}
			{left > 0 && <li>{count(left)} more</li>}
		</ul>
	);
}

function doubtsOf(r: Retained): string[] {
	const found = r.notes.map((n) => `${n}.`.replace(/\.\.$/, "."));

	if (!r.exact) found.push("The list of blocks is approximate.");
	if (r.unknown_allocator) found.push(`${r.unknown_allocator} is an allocator that memprof does not know.`);
	if (r.unreadable_bytes > 0) found.push(`${bytes(r.unreadable_bytes)} could not be read.`);
	if (r.unreachable.count > 0)
		found.push(
			`Nothing reaches ${count(r.unreachable.count)} blocks (${bytes(r.unreachable.bytes)}): a leak report shows them.`,
		);
	return found;
}

/** Which variables, frames and so on keep how much, at this moment. */
export function RetainedNow() {
	return (
		<Taken
			title="What keeps memory"
			about="Variables and stacks, with all that could not be reached without them. The process is stopped for some milliseconds and copied."
			button="What keeps memory (retained)"
			doing="The process is copied, and its pointers are followed…"
			endpoint="retained"
			command={useCommand<Retained>()}
			summary={(r) =>
				`${count(r.live.count)} live blocks, ${bytes(r.live.bytes)}. ` +
				`The process was stopped for ${duration(r.pause_ns / 1e9)}.`
			}
		>
			{(r) => (
				<>
					<Table
						caption="What keeps memory"
						columns={columns}
						rows={r.retained.children}
						rowKey={(k) => r.retained.children.indexOf(k)}
						sort={choice("retained_sort", "retained")}
						onSort={(key) => go({ retained_sort: key })}
						first={20}
						detail={(k) =>
							k.children.length > 0 ? <Kept children={k.children} level={1} /> : <p>It keeps nothing else.</p>
						}
					/>
					<Unsure doubts={doubtsOf(r)} />
				</>
			)}
		</Taken>
	);
}
