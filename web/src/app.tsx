import type { FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useRecordings } from "./answer";
import { base, duration, moment, seconds } from "./format";
import { Filters } from "./parts/filters";
import { useChosenRecording } from "./parts/in_progress";
import { NoRecording } from "./parts/no_recording";
import { go, linkTo, recording, source, view, views } from "./state";
import { Allocations } from "./views/allocations/allocations";
import { Diff } from "./views/diff/diff";
import { Flame } from "./views/flame";
import { Groups } from "./views/groups/groups";
import { Leaks } from "./views/leaks/leaks";
import { Libraries } from "./views/libraries";
import { Live } from "./views/live/live";
import { Maps } from "./views/maps/maps";
import { Overview } from "./views/overview/overview";
import { Sizes } from "./views/sizes";
import { SourceFile } from "./views/source/source";
import { Threads } from "./views/threads";
import { Tree } from "./views/tree/tree";

const drawn: Record<string, FunctionComponent> = {
	overview: Overview,
	leaks: Leaks,
	flame: Flame,
	tree: Tree,
	groups: Groups,
	libraries: Libraries,
	threads: Threads,
	sizes: Sizes,
	allocations: Allocations,
	maps: Maps,
	source: SourceFile,
	diff: Diff,
	live: Live,
};

function Recordings() {
	const list = useRecordings().value ?? [];

	if (list.length < 2) return null;
	const chosen = recording.value === "last" ? list.at(-1)?.id : recording.value;

	return (
		<label class="choose">
			<span>Recording</span>
			<select value={chosen} onChange={(e) => go({ recording: e.currentTarget.value })}>
				{list.map((r) => (
					<option key={r.id} value={r.id} disabled={r.error !== undefined}>
						{r.error === undefined
							? `${base(r.executable)} ${r.pid}, ${moment(r.timestamp)}, ${duration(seconds(r.runtime))}`
							: `${r.id}: ${r.error}`}
					</option>
				))}
			</select>
		</label>
	);
}

function Navigation({ inProgress }: { inProgress: boolean }) {
	const here = source().kind === "file" ? views.filter((v) => v.inFile) : views;

	return (
		<nav aria-label="Views">
			<ul>
				{here
					.filter((v) => v.name !== "live" || inProgress)
					.map((v) => (
						<li key={v.name}>
							<a href={linkTo({}, v.name)} aria-current={v.name === view.value ? "page" : undefined}>
								{v.title}
							</a>
						</li>
					))}
			</ul>
		</nav>
	);
}

/** The page: its head, the views to choose from, the filters, and the chosen view. */
export function App() {
	const heading = useRef<HTMLHeadingElement>(null);
	const drawnBefore = useRef(false);
	const shown = views.find((v) => v.name === view.value) ?? views[0];
	const inProgress = useChosenRecording()?.in_progress === true;
	const none = useRecordings().value?.length === 0;
	const View = none ? NoRecording : (drawn[view.value] ?? Overview);

	const skip = (e: Event) => {
		e.preventDefault();
		heading.current?.focus();
	};

	useEffect(() => {
		document.title = `${shown?.title ?? ""} – memprof`;
		/* A screen reader begins at the new view; not when the page is opened. */
		if (drawnBefore.current) heading.current?.focus();
		drawnBefore.current = true;
	}, [shown]);
	return (
		<>
			<a class="skip" href="#content" onClick={skip}>
				Skip to the content
			</a>
			<header>
				<a class="name" href={linkTo({}, "overview")}>
					memprof
				</a>
				<Recordings />
				<Navigation inProgress={inProgress} />
			</header>
			<main>
				<h1 id="content" ref={heading} tabIndex={-1}>
					{shown?.title}
				</h1>
				{source().kind === "server" && !none && !["live", "source"].includes(view.value) && <Filters />}
				<View key={`${view.value} ${recording.value}`} />
			</main>
			<footer>
				{source().kind === "file" ? "A report of memprof, complete in this file." : "memprof server"}
			</footer>
		</>
	);
}
