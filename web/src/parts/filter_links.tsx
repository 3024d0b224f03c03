import { type Changes, linkTo, source } from "../state";

const GOALS = [
	["flame", "Flame graph"],
	["groups", "Stacks"],
	["allocations", "Allocations"],
] as const;

/** Leads to other views with a filter; a file cannot filter. */
export function FilterLinks({ only, filter }: { only: string; filter: Changes }) {
	if (source().kind === "file") return null;
	return (
		<p class="links">
			Only {only} in:
			{GOALS.map(([view, title]) => (
				<a key={view} href={linkTo(filter, view)}>
					{title}
				</a>
			))}
		</p>
	);
}
