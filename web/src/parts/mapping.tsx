import type { Mapping, MapRegion, Maps } from "../api";
import { useAnswer } from "../answer";
import { bytes, duration, seconds } from "../format";
import { linkTo } from "../state";
import { framesOf } from "./listed";
import { Stack } from "./stack";
import { Shown } from "./states";

/** As in /proc/PID/maps; `?`: not known. */
export function permissions(m: MapRegion): string {
	const kind = m.is_shared === null ? "?" : m.is_shared ? "s" : "p";

	return [m.is_readable ? "r" : "-", m.is_writable ? "w" : "-", m.is_executable ? "x" : "-", kind].join("");
}

export function hex(address: string): string {
	return `0x${address.toLowerCase().replace(/^0+(?=.)/, "")}`;
}

function Regions({ id }: { id: number }) {
	const answer = useAnswer<Maps>("maps", { id: String(id), with_regions: "true" });

	return (
		<Shown answer={answer}>
			{({ maps }) => (
				<ul class="regions">
					{maps
						.flatMap((m) => m.regions ?? [])
						.map((r) => (
							<li key={r.address_s}>
								<code>{hex(r.address_s)}</code> {bytes(r.size)} <code>{permissions(r)}</code> {r.name}
							</li>
						))}
				</ul>
			)}
		</Shown>
	);
}

/** All that is known of a mapping.  @start: of the recording, Unix time in seconds. */
export function MappingDetail({ of: m, start }: { of: Mapping; start: number | undefined }) {
	const only = { from_map: String(m.id), page: undefined };
	const end = m.deallocation;

	return (
		<div class="pair">
			<section>
				<h3>What it holds</h3>
				<ul class="links">
					<li>
						<a href={linkTo(only, "groups")}>Stacks of its blocks</a>
					</li>
					<li>
						<a href={linkTo(only, "overview")}>Overview of its blocks</a>
					</li>
				</ul>
				<h3>Regions</h3>
				<Regions id={m.id} />
			</section>
			<section>
				<h3>Who mapped it</h3>
				{m.source ? (
					<>
						<p>
							Thread {m.source.thread}, {duration(seconds(m.source.timestamp_relative))} after the start
						</p>
						<Stack frames={framesOf(m.source.backtrace)} />
					</>
				) : (
					<p>
						It was there before, or no call was recorded: a look at the mappings first had it{" "}
						{duration(seconds(m.timestamp_relative))} after the start.
					</p>
				)}
				{end && (
					<>
						<h3>Unmapped</h3>
						{start !== undefined && <p>{duration(seconds(end.timestamp) - start)} after the start</p>}
						{end.source && <Stack frames={framesOf(end.source.backtrace)} />}
					</>
				)}
			</section>
		</div>
	);
}
