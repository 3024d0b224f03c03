import { useEffect, useState } from "preact/hooks";
import type { Growth, Libraries, Quick, Recording, Report, Sizes, Threads, Unreadable } from "./api";
import { type Params, queryOf, Refusal, type Source } from "./source";
import { filters, recording, source } from "./state";

/** An answer, or what is known before it is there.  While a new one is fetched the last one is still shown. */
export interface Answer<T> {
	readonly value: T | undefined;
	readonly error: Refusal | undefined;
	readonly loading: boolean;
}

const MOST_KEPT = 24;

/* Answers that were given, the latest last. */
const kept = new Map<string, unknown>();

function keep(path: string, value: unknown): void {
	kept.delete(path);
	kept.set(path, value);
	if (kept.size > MOST_KEPT) for (const oldest of kept.keys()) return void kept.delete(oldest);
}

/** Forgets all answers: the recording has grown. */
export function forgetAnswers(): void {
	kept.clear();
}

function asRefusal(e: unknown): Refusal {
	return e instanceof Refusal ? e : new Refusal(0, e instanceof Error ? e.message : String(e));
}

type Fetch = (s: Source, path: string, signal: AbortSignal) => Promise<unknown>;

const asJson: Fetch = (s, path, signal) => s.get(path, signal);

/* Answers that are being fetched, for all that want them. */
const fetched = new Map<string, Promise<unknown>>();

const together: Fetch = (s, path) => {
	const answer = fetched.get(path) ?? s.get(path).finally(() => fetched.delete(path));

	fetched.set(path, answer);
	return answer;
};

const asText: Fetch = (s, path, signal) => s.text(path, signal);

/** The answer of an endpoint below /.  @path: undefined: nothing is asked.  @tick: asked again when it changes. */
function usePath<T>(path: string | undefined, fetch: Fetch, tick: number): Answer<T> {
	const [state, setState] = useState<{ path?: string; tick?: number; value?: T; error?: Refusal }>({});
	const known = path !== undefined && tick === 0 ? (kept.get(path) as T | undefined) : undefined;

	useEffect(() => {
		if (path === undefined || known !== undefined) return undefined;
		const control = new AbortController();

		fetch(source(), path, control.signal).then(
			(value) => {
				if (control.signal.aborted) return;
				keep(path, value);
				setState({ path, tick, value: value as T });
			},
			(e: unknown) => {
				if (!control.signal.aborted) setState({ path, tick, error: asRefusal(e) });
			},
		);
		return () => control.abort();
	}, [path, tick, fetch, known]);

	if (path === undefined) return { value: undefined, error: undefined, loading: false };
	if (known !== undefined) return { value: known, error: undefined, loading: false };
	const current = state.path === path && state.tick === tick;

	return { value: state.value, error: current ? state.error : undefined, loading: !current };
}

/** An answer about the chosen recording.  @params: all but the filters. */
export function useAnswer<T>(endpoint: string | undefined, params: Params = {}, tick = 0): Answer<T> {
	const path = endpoint === undefined ? undefined : `data/${recording.value}/${endpoint}${queryOf(params)}`;

	return usePath<T>(path, asJson, tick);
}

/** As useAnswer(), of an endpoint that answers with text. */
export function useText(endpoint: string | undefined, params: Params = {}): Answer<string> {
	const path = endpoint === undefined ? undefined : `data/${recording.value}/${endpoint}${queryOf(params)}`;

	return usePath<string>(path, asText, 0);
}

/** As useAnswer(), with the filters; a file has only what it was written with. */
export function useFiltered<T>(endpoint: string | undefined, params: Params = {}): Answer<T> {
	const conditions = source().kind === "file" ? {} : filters.value;

	return useAnswer<T>(endpoint, { ...params, ...conditions });
}

/** @now: false: it is not asked for yet. */
export const useReport = (now = true): Answer<Report> => useFiltered<Report>(now ? "report" : undefined);
export const useGrowth = (now = true): Answer<Growth> => useFiltered<Growth>(now ? "growth" : undefined);
export const useLibraries = (): Answer<Libraries> => useFiltered<Libraries>("libraries");
export const useThreads = (): Answer<Threads> => useFiltered<Threads>("threads");
export const useSizes = (): Answer<Sizes> => useFiltered<Sizes>("sizes");

/** What the index says, which is there long before the report; null: there is no index, or a filter. */
export function useQuick(): Answer<Quick | null> {
	const possible = source().kind === "server" && Object.keys(filters.value).length === 0;

	return useAnswer<Quick | null>(possible ? "quick" : undefined);
}

/** The recordings of the server; a file has none. */
export function useRecordings(): Answer<(Recording | Unreadable)[]> {
	return usePath(source().kind === "server" ? "list" : undefined, together, 0);
}
