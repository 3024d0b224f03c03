/*
 * What the page shows is in its URL, after the #: the view, the recording, the filters and the choices
 * of views.  So every state is a link, and the browser's Back button leads to the one before.
 */
import { computed, signal } from "@preact/signals";
import filterList from "virtual:filters";
import type { Params, Source } from "./source";

export interface View {
	readonly name: string;
	readonly title: string;
	/** Also in a file of memprof report --html. */
	readonly inFile: boolean;
}

export const views: readonly View[] = [
	{ name: "overview", title: "Overview", inFile: true },
	{ name: "leaks", title: "Leaks and growth", inFile: true },
	{ name: "flame", title: "Flame graph", inFile: true },
	{ name: "tree", title: "Call tree", inFile: true },
	{ name: "groups", title: "Stacks", inFile: true },
	{ name: "libraries", title: "Libraries", inFile: true },
	{ name: "threads", title: "Threads", inFile: true },
	{ name: "sizes", title: "Sizes", inFile: true },
	{ name: "allocations", title: "Allocations", inFile: false },
	{ name: "maps", title: "Mappings", inFile: false },
	{ name: "source", title: "Source", inFile: false },
	{ name: "diff", title: "Compare", inFile: false },
	{ name: "live", title: "Live", inFile: false },
];

const filterNames = new Set(filterList.map((f) => f.name));

interface Place {
	readonly view: string;
	readonly query: URLSearchParams;
}

function parse(hash: string): Place {
	const [view, query] = hash.replace(/^#/, "").split("?", 2);
	const known = views.some((v) => v.name === view);

	return { view: known && view ? view : "overview", query: new URLSearchParams(query ?? "") };
}

const place = signal(parse(location.hash));

addEventListener("hashchange", () => {
	place.value = parse(location.hash);
});

export const view = computed(() => place.value.view);
/** The id of the recording. */
export const recording = computed(() => place.value.query.get("recording") ?? "last");

/** The filters, as parameters of an endpoint. */
export const filters = computed<Params>(() => {
	const found: Record<string, string[]> = {};

	for (const name of filterNames) {
		const values = place.value.query.getAll(name);

		if (values.length > 0) found[name] = values;
	}
	return found;
});

/** A choice of a view, as `cost`. */
export function choice(name: string, otherwise = ""): string {
	return place.value.query.get(name) ?? otherwise;
}

/** undefined removes a parameter. */
export type Changes = Record<string, string | readonly string[] | undefined>;

/** The URL of this state with changes. */
export function linkTo(changes: Changes, view: string = place.value.view): string {
	const query = new URLSearchParams(place.value.query);

	for (const [name, value] of Object.entries(changes)) {
		query.delete(name);
		for (const v of [value ?? []].flat()) query.append(name, v);
	}
	query.sort();
	const text = query.toString();

	return text === "" ? `#${view}` : `#${view}?${text}`;
}

/** Goes there. */
export function go(changes: Changes, view: string = place.value.view): void {
	location.hash = linkTo(changes, view);
}

/** As go(), without a step for the Back button: for choices that change while the user types. */
export function replace(changes: Changes): void {
	history.replaceState(null, "", linkTo(changes));
	place.value = parse(location.hash);
}

const opened = signal<Source | undefined>(undefined);

/** Set once, before the page is drawn. */
export function setSource(s: Source): void {
	opened.value = s;
}

export function source(): Source {
	if (!opened.value) throw new Error("the page has no source yet");
	return opened.value;
}
