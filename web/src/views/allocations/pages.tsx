import { count } from "../../format";
import { choice, linkTo } from "../../state";

/** The page of a list that the URL chooses, from 1 on. */
export function pageChoice(): number {
	return Math.max(1, Math.floor(Number(choice("page", "1"))) || 1);
}

function PageLink({ to, title, possible }: { to: number; title: string; possible: boolean }) {
	if (!possible) return <span class="about">{title}</span>;
	return <a href={linkTo({ page: to === 1 ? undefined : String(to) })}>{title}</a>;
}

interface Props {
	total: number;
	size: number;
	what: string;
	place: "above" | "below";
}

/** Links to the pages of a list of @total, of which @size are on each. */
export function Pages({ total, size, what, place }: Props) {
	const page = pageChoice();
	const last = Math.max(1, Math.ceil(total / size));
	const first = (page - 1) * size + 1;

	return (
		<nav class="pages" aria-label={`Pages, ${place} the list`}>
			<span role="status">
				{page > last
					? `The list of ${count(total)} ${what} has only ${count(last)} pages.`
					: `${count(Math.min(first, total))}–${count(Math.min(first + size - 1, total))} of ${count(total)} ${what}`}
			</span>
			<PageLink to={1} title="First" possible={page > 1} />
			<PageLink to={Math.min(page - 1, last)} title="Previous" possible={page > 1} />
			<PageLink to={page + 1} title="Next" possible={page < last} />
			<PageLink to={last} title="Last" possible={page < last} />
		</nav>
	);
}
