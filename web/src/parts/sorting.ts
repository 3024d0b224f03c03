import { choice, go } from "../state";

/** The order of a table as Table takes it, from the URL: @usual, if the table has no such column. */
export function sortChoice(columns: readonly { readonly key: string }[], usual: string): string {
	const wanted = choice("sort", usual);

	return columns.some((c) => c.key === wanted.replace(/^-/, "")) ? wanted : usual;
}

/** Sorts a table.  A list of pages begins again. */
export function sortBy(key: string): void {
	go({ sort: key, page: undefined });
}
