/* What a view shows when it has nothing else to show. */
import type { ComponentChildren } from "preact";
import type { Answer } from "../answer";

export function Failure({ title, why }: { title: string; why: string }) {
	return (
		<div class="failure" role="alert">
			<strong>{title}.</strong> {why}
		</div>
	);
}

export function Empty({ children }: { children: ComponentChildren }) {
	return <p class="empty">{children}</p>;
}

interface Props<T> {
	answer: Answer<T>;
	children: (value: T) => ComponentChildren;
}

/** Draws an answer when it is there; says that it is being fetched, or why there is none. */
export function Shown<T>({ answer, children }: Props<T>) {
	if (answer.error) return <Failure title="There is no answer" why={answer.error.message} />;
	if (answer.value === undefined)
		return (
			<p class="waiting" role="status">
				Reading the recording…
			</p>
		);
	return (
		<div class={answer.loading ? "stale" : undefined} aria-busy={answer.loading}>
			{children(answer.value)}
		</div>
	);
}
