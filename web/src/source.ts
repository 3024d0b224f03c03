/* Where answers come from: the server that sent the page, or the page itself (memprof report --html). */

export type Params = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The server's or the page's reason why there is no answer. */
export class Refusal extends Error {
	readonly status: number;

	constructor(status: number, why: string) {
		super(why);
		this.status = status;
	}
}

export interface Source {
	readonly kind: "server" | "file";
	/** @path: an endpoint below /. */
	get(path: string, signal?: AbortSignal): Promise<unknown>;
	text(path: string, signal?: AbortSignal): Promise<string>;
	post(path: string): Promise<unknown>;
}

/** `?name=value&...`, with the parameters that have a value, sorted by name. */
export function queryOf(params: Params): string {
	const query = new URLSearchParams();

	for (const name of Object.keys(params).sort()) {
		for (const value of [params[name] ?? []].flat()) query.append(name, value);
	}
	const text = query.toString();

	return text === "" ? "" : `?${text}`;
}

async function ask(method: string, path: string, signal?: AbortSignal): Promise<Response> {
	let response;

	try {
		response = await fetch(path, { method, ...(signal && { signal }) });
	} catch (e) {
		if (signal?.aborted) throw e;
		throw new Refusal(0, "The server does not answer. Has it ended?");
	}
	if (!response.ok) throw new Refusal(response.status, (await response.text()).trim());
	return response;
}

const server: Source = {
	kind: "server",
	get: async (path, signal) => (await ask("GET", path, signal)).json() as Promise<unknown>,
	text: async (path, signal) => (await ask("GET", path, signal)).text(),
	post: async (path) => (await ask("POST", path)).json() as Promise<unknown>,
};

interface Embedded {
	version: number;
	answers: Record<string, unknown>;
}

/** A page that contains its data.  @text: gzip'd JSON in base64. */
async function file(text: string): Promise<Source> {
	const packed = Uint8Array.from(atob(text.replace(/\s/g, "")), (c) => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const data = (await new Response(stream).json()) as Embedded;
	const refuse = () =>
		Promise.reject(new Refusal(404, "This file does not contain that: memprof server shows it."));

	if (data.version !== 1) throw new Refusal(0, "The data of this page are of another version of memprof.");
	return {
		kind: "file",
		get: (path) => {
			const answer = data.answers[path.replace(/^data\/last\//, "")];

			return answer === undefined ? refuse() : Promise.resolve(answer);
		},
		text: refuse,
		post: refuse,
	};
}

/** The source of this page.  Fails if its data cannot be read. */
export function openSource(): Promise<Source> {
	const text = document.getElementById("memprof-data")?.textContent;

	return text ? file(text) : Promise.resolve(server);
}
