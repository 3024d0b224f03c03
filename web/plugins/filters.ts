import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

interface Schema {
	$ref?: string;
	enum?: string[];
	description?: string;
	items?: Schema;
	properties?: Record<string, Schema>;
}

interface Parameter {
	name: string;
	schema: Schema;
	description: string;
}

interface OpenApi {
	components: { parameters: Record<string, Parameter>; schemas: Record<string, Schema> };
}

/* Several words of bytehound's that mean the same, or that nothing here can select. */
const withheld = new Set(["custom_filter", "deallocation_backtraces", "alive_at_2"]);
/* Those that can be given again: parameters of their own in openapi.json. */
const repeated = ["alive_at", "backtraces", "thread", "marker", "from_map", "allocator"];

function kind(schema: Schema): string {
	return schema.$ref?.split("/").at(-1) ?? "Text";
}

function read(): unknown[] {
	const api = JSON.parse(readFileSync("../src/server/openapi.json", "utf8")) as OpenApi;
	const single = Object.entries(api.components.schemas.Filter?.properties ?? {});
	const again = repeated.map((name) => api.components.parameters[name]);

	return [
		...single
			.filter(([name]) => !withheld.has(name))
			.map(([name, s]) => ({
				name,
				kind: kind(s),
				words: s.enum ?? [],
				about: s.description ?? "",
				again: false,
			})),
		...again.map((p) => {
			if (!p) throw new Error("openapi.json lacks a filter");
			return {
				name: p.name,
				kind: kind(p.schema.items ?? {}),
				words: p.schema.items?.enum ?? [],
				about: p.description,
				again: true,
			};
		}),
	];
}

/** The module virtual:filters: all filters of the server, from its openapi.json. */
export function serverFilters(): Plugin {
	const name = "virtual:filters";

	return {
		name: "memprof-server-filters",
		resolveId: (id) => (id === name ? `\0${name}` : undefined),
		load: (id) => (id === `\0${name}` ? `export default ${JSON.stringify(read())};` : undefined),
	};
}
