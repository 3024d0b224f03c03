import type { LeakCluster, LeakReport } from "../api";
import { bytes, count, duration, sitePlace } from "../format";
import { frameName } from "../stacks";
import { choice, go } from "../state";
import { callerOf } from "./caller";
import { useCommand } from "./command";
import { Stack } from "./stack";
import { type Column, Table } from "./table";
import { Taken, Unsure } from "./taken";

const held = (c: LeakCluster): number => c.bytes + c.indirect_bytes;

function placeOf(c: LeakCluster): string {
	const caller = callerOf(c.stack ?? []);

	return caller ? frameName(caller) : "not in the recording";
}

function Kind({ cluster: c }: { cluster: LeakCluster }) {
	return (
		<>
			{c.type ?? "unknown"} {c.owner && <span class="place">{c.owner}</span>}
			{c.preview && <code>“{c.preview}”</code>}
			{c.cycles > 0 && <span class="tag">points to itself</span>}
			{c.suppressed && <span class="tag">suppressed</span>}
		</>
	);
}

function Allocated({ cluster }: { cluster: LeakCluster }) {
	const caller = callerOf(cluster.stack ?? []);

	if (!caller) return <span class="place">{placeOf(cluster)}</span>;
	return (
		<>
			<code>{frameName(caller)}</code>{" "}
			<span class="place">
				{sitePlace({
					source: caller.source ?? null,
					library: caller.library ?? null,
					...(caller.line && { line: caller.line }),
				})}
			</span>
		</>
	);
}

const columns: readonly Column<LeakCluster>[] = [
	{
		key: "held",
		title: "Bytes held",
		about: "of these blocks and of all that only they hold",
		value: held,
		show: (c) => bytes(held(c)),
		number: true,
	},
	{ key: "blocks", title: "Blocks", value: (c) => c.count, show: (c) => count(c.count), number: true },
	{ key: "size", title: "Size", value: (c) => c.size, show: (c) => bytes(c.size), number: true, minor: true },
	{ key: "at", title: "Allocated at", value: placeOf, show: (c) => <Allocated cluster={c} /> },
	{ key: "what", title: "What", value: (c) => c.type ?? "", show: (c) => <Kind cluster={c} /> },
];

function Detail({ cluster: c, pid }: { cluster: LeakCluster; pid: number }) {
	const address = c.samples[0]?.replace(/^0+/, "0x").toLowerCase();

	return (
		<>
			{c.stack ? (
				<Stack frames={c.stack} />
			) : (
				<p>Its stack is not known: it was allocated before the recording began, or not sampled.</p>
			)}
			{c.age_ns !== null && <p>Allocated {duration(c.age_ns / 1e9)} before this look.</p>}
			{c.indirect_count > 0 && (
				<p>
					These blocks hold {count(c.indirect_count)} more ({bytes(c.indirect_bytes)}).
				</p>
			)}
			{address && (
				<p>
					What points to a block: <code>{`memprof leaks -p ${pid} --why ${address}`}</code>
				</p>
			)}
		</>
	);
}

function doubtsOf(r: LeakReport): string[] {
	const found = r.heaps.flatMap((h) => [
		...(h.doubt ? [`${h.allocator}: the list of blocks is approximate: ${h.doubt}.`] : []),
		...h.damaged.map((d) => `${h.allocator}: its data are DAMAGED: ${d.what}.`),
	]);

	if (r.unknown_allocator)
		found.push(
			`${r.unknown_allocator} is an allocator that memprof does not know: leaks in its memory are missed.`,
		);
	if (r.coverage.unreadable_bytes > 0)
		found.push(`${bytes(r.coverage.unreadable_bytes)} could not be read; pointers in it are missing.`);
	if (!r.recording) found.push("The recording could not be joined: the leaks have no stacks.");
	else {
		if (r.recording.unknown_count > 0)
			found.push(
				`${count(r.recording.unknown_count)} of the leaked blocks (${bytes(r.recording.unknown_bytes)}) have no ` +
					"stack: they are older than the recording, or not sampled.",
			);
		if (r.recording.uncertain_count > 0)
			found.push(`The stacks of ${count(r.recording.uncertain_count)} blocks are uncertain.`);
	}
	if (r.garbage.count > 0)
		found.push(
			`${count(r.garbage.count)} objects of Python (${bytes(r.garbage.bytes)}) are garbage that its collector will free.`,
		);
	return found;
}

function summaryOf(r: LeakReport): string {
	const pause = `The process was stopped for ${duration(r.pause_ns / 1e9)}.`;

	return r.leaked.count > 0
		? `Nothing points to ${count(r.leaked.count)} blocks (${bytes(r.leaked.bytes)}) any more. ${pause}`
		: `No leaks: all of the ${count(r.live.count)} live blocks (${bytes(r.live.bytes)}) can be reached. ${pause}`;
}

/** What nothing in the process points to any more, at this moment. */
export function LeaksNow() {
	return (
		<Taken
			title="Leaks"
			about="Blocks whose address the program cannot find any more. The process is stopped for some milliseconds and copied."
			button="Find leaks now"
			doing="The process is copied and searched…"
			endpoint="leaks"
			command={useCommand<LeakReport>()}
			summary={summaryOf}
		>
			{(r) => (
				<>
					{r.clusters.length > 0 && (
						<Table
							caption="Leaks"
							columns={columns}
							rows={r.clusters}
							rowKey={(c) => r.clusters.indexOf(c)}
							sort={choice("leaks_sort", "held")}
							onSort={(key) => go({ leaks_sort: key })}
							first={20}
							detail={(c) => <Detail cluster={c} pid={r.pid} />}
						/>
					)}
					<Unsure doubts={doubtsOf(r)} />
				</>
			)}
		</Taken>
	);
}
