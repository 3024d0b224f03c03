import { useMemo } from "preact/hooks";
import type { Growth, Info, Quick, QuickSite, Report } from "../../api";
import { useGrowth, useQuick, useReport } from "../../answer";
import { doubtsOf, stackDoubtsOf } from "../../doubts";
import { bytes, change, count, duration, moment, percent, seconds, siteName, sitePlace } from "../../format";
import { Failure, Shown } from "../../parts/states";
import { MemoryOverTime } from "./memory";
import { Spark } from "../../parts/spark";
import { linkTo } from "../../state";

const END: Record<string, string> = {
	detached: "memprof was detached",
	exited: "the process ended",
	execed: "the process executed another program",
	time: "the time was over",
	error: "an error",
	kept: "the session was kept",
	pieced: "it continues in the next piece",
	continues: "it continues",
	unknown: "unknown: the recording is cut off",
};

function Process({ info }: { info: Info }) {
	return (
		<section class="card process">
			<h2>{info.called ?? info.executable}</h2>
			<p>
				<code>{info.cmdline}</code>
			</p>
			<dl>
				<dt>Process</dt>
				<dd>
					{info.pid}, {info.architecture}
				</dd>
				<dt>Recorded</dt>
				<dd>
					{moment(info.timestamp)}, for {duration(seconds(info.runtime))}
				</dd>
				<dt>Ended because</dt>
				<dd>{END[info.end_reason] ?? info.end_reason}</dd>
				<dt>Stopped for</dt>
				<dd>
					{duration(info.attach_stop_ns / 1e9)} to attach, {duration(info.detach_stop_ns / 1e9)} to detach
				</dd>
			</dl>
		</section>
	);
}

interface FactProps {
	title: string;
	/** As it is, and as it is shown. */
	value: number;
	shown: string;
	about: string;
}

function Fact({ title, value, shown, about }: FactProps) {
	return (
		<div class="fact">
			<dt>{title}</dt>
			<dd>
				<strong data-value={value}>{shown}</strong>
				<span>{about}</span>
			</dd>
		</div>
	);
}

const error = (n: number | undefined): string => (n ? ` ± ${bytes(n)}` : "");

function Facts({ of: { totals: t } }: { of: Pick<Report, "totals"> }) {
	return (
		<dl class="facts">
			<Fact
				title="Live at the end"
				value={t.leaked_bytes}
				shown={bytes(t.leaked_bytes) + error(t.standard_error_leaked_bytes)}
				about={`${count(t.leaked_count)} blocks that were allocated in the recording`}
			/>
			<Fact
				title="Peak"
				value={t.peak_bytes}
				shown={bytes(t.peak_bytes)}
				about={`at ${duration(seconds(t.peak_at))}`}
			/>
			<Fact
				title="Allocated"
				value={t.allocated_bytes}
				shown={bytes(t.allocated_bytes) + error(t.standard_error_allocated_bytes)}
				about={`${count(t.allocations)} allocations`}
			/>
			<Fact
				title="Temporary"
				value={t.temporary}
				shown={percent(t.temporary, t.allocations)}
				about={`${count(t.temporary)} freed before the next allocation`}
			/>
		</dl>
	);
}

function Doubts({ found, none }: { found: readonly string[]; none: string }) {
	return (
		<section class={found.length > 0 ? "card doubts" : "card"}>
			<h2>What is uncertain</h2>
			{found.length > 0 ? (
				<ul>
					{found.map((d) => (
						<li key={d}>{d}</li>
					))}
				</ul>
			) : (
				<p>{none}</p>
			)}
		</section>
	);
}

function Growers({ growth, runtime }: { growth: Growth; runtime: number }) {
	const growing = growth.sites.filter((s) => s.growth_bytes > 0).slice(0, 5);

	return (
		<section class="card">
			<h2>What grew most</h2>
			<p class="about">Live bytes in the second half of the time ({duration(runtime)} in all)</p>
			{growing.length === 0 ? (
				<p>Nothing grew.</p>
			) : (
				<ol class="sites">
					{growing.map((s) => (
						<li key={s.backtrace_id}>
							<Spark values={s.levels} label={s.shape ?? "no known shape"} />
							<span>
								<code>{siteName(s)}</code> <span class="place">{sitePlace(s)}</span>
							</span>
							<strong data-value={s.growth_bytes}>
								{s.growth_per_minute === null ? change(s.growth_bytes) : `${change(s.growth_per_minute)}/min`}
							</strong>
						</li>
					))}
				</ol>
			)}
			<a href={linkTo({}, "leaks")}>All sites that grow</a>
		</section>
	);
}

function Biggest({ sites, total }: { sites: readonly QuickSite[]; total: number }) {
	const first = useMemo(
		() => [...sites].sort((a, b) => b.leaked_bytes - a.leaked_bytes).slice(0, 5),
		[sites],
	);

	return (
		<section class="card">
			<h2>What is live at the end</h2>
			<ol class="sites">
				{first
					.filter((s) => s.leaked_bytes > 0)
					.map((s) => (
						<li key={s.backtrace_id}>
							<span class="bar" style={{ "--share": total > 0 ? s.leaked_bytes / total : 0 }} />
							<span>
								<code>{siteName(s)}</code> <span class="place">{sitePlace(s)}</span>
							</span>
							<strong data-value={s.leaked_bytes}>{bytes(s.leaked_bytes)}</strong>
						</li>
					))}
			</ol>
			<a href={linkTo({}, "groups")}>All stacks</a>
		</section>
	);
}

function Soon({ quick }: { quick: Quick }) {
	return (
		<>
			<Process info={quick} />
			<section class="card">
				<h2>{bytes(quick.totals.leaked_bytes)} live at the end</h2>
				<p>
					{count(quick.totals.leaked_count)} blocks, from the recording's index. The events are still being
					read.
				</p>
			</section>
			<Biggest sites={quick.sites} total={quick.totals.leaked_bytes} />
			<Doubts found={doubtsOf(quick)} none="Nothing, as far as the index says." />
		</>
	);
}

/** What the process is, what grew, what is uncertain, and memory over time. */
export function Overview() {
	const quick = useQuick();
	/* Reading the events would delay what the index says. */
	const report = useReport(!quick.loading);
	const growth = useGrowth(report.value !== undefined);

	if (!report.value && !report.error && quick.value)
		return (
			<div class="cards" aria-busy="true">
				<Soon quick={quick.value} />
			</div>
		);
	return (
		<Shown answer={report}>
			{(r) =>
				r.event === "page-faults" ? (
					<Failure
						title="This is a recording of page faults"
						why="The page shows recordings of allocations; memprof report shows this one."
					/>
				) : (
					<div class="cards" aria-busy={growth.loading}>
						<Process info={r} />
						<section class="card rest">
							<h2 class="unseen">Sums</h2>
							<Facts of={r} />
						</section>
						<MemoryOverTime report={r} growth={growth.value} />
						{growth.error && <Failure title="What grew is not known" why={growth.error.message} />}
						{growth.value && <Growers growth={growth.value} runtime={seconds(r.runtime)} />}
						<Biggest sites={r.sites} total={r.totals.leaked_bytes} />
						<Doubts
							found={[...doubtsOf(r), ...stackDoubtsOf(r)]}
							none="Nothing: no event was lost, and every stack is complete."
						/>
					</div>
				)
			}
		</Shown>
	);
}
