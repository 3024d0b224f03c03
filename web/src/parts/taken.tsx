import type { ComponentChildren } from "preact";
import type { Command } from "./command";
import { Failure } from "./states";

interface Props<T> {
	title: string;
	about: string;
	button: string;
	/** While it is busy. */
	doing: string;
	endpoint: string;
	command: Command<T>;
	/** The outcome in one sentence, which a screen reader says. */
	summary: (value: T) => string;
	children: (value: T) => ComponentChildren;
}

/** Something about the running process that is found out when the user wants it. */
export function Taken<T>(p: Props<T>) {
	const { busy, value, at, error, run } = p.command;

	return (
		<section class="card" aria-busy={busy}>
			<h2>{p.title}</h2>
			<p class="about">{p.about}</p>
			<button type="button" disabled={busy} onClick={() => run(p.endpoint)}>
				{p.button}
			</button>
			<p role="status">
				{busy
					? p.doing
					: value !== undefined && at && `${p.summary(value)} Taken at ${at.toLocaleTimeString("sv-SE")}.`}
			</p>
			{error !== undefined && <Failure title="That failed" why={error} />}
			{value !== undefined && <div class={busy ? "stale" : undefined}>{p.children(value)}</div>}
		</section>
	);
}

/** Why an analysis is not certain. */
export function Unsure({ doubts }: { doubts: readonly string[] }) {
	if (doubts.length === 0) return null;
	return (
		<ul class="unsure">
			{doubts.map((d) => (
				<li key={d}>{d}</li>
			))}
		</ul>
	);
}
