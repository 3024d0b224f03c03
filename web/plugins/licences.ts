import { existsSync, readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

interface Package {
	name: string;
	version: string;
	license: string;
	text: string;
}

/* The folder of the package that a module is in: .../node_modules/NAME or .../node_modules/@SCOPE/NAME. */
function folderOf(module: string): string | undefined {
	return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module.replace(/^\0/, ""))?.[0];
}

function read(folder: string): Package {
	const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Partial<Package>;
	const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));

	if (!about.name || !about.version || !about.license)
		throw new Error(`${folder}: no name, version or licence`);
	return {
		name: about.name,
		version: about.version,
		license: about.license,
		text: file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "",
	};
}

/**
 * Puts the licences of the packages that became a part of the page at its end, as they demand, and
 * writes their names and versions to @list, for the program's SBOM.
 */
export function licences(list: string): Plugin {
	return {
		name: "memprof-licences",
		enforce: "post",
		generateBundle: {
			/* After the other files were put into the page. */
			order: "post",
			handler(_options, bundle) {
				const modules = [...this.getModuleIds()].filter((id) => this.getModuleInfo(id)?.isIncluded !== false);
				const folders = new Set(modules.map(folderOf).filter((f) => f !== undefined));
				const packages = [...folders]
					.filter((f) => existsSync(join(f, "package.json")) && !f.endsWith("/vite"))
					.map(read)
					.sort((a, b) => a.name.localeCompare(b.name));
				const page = bundle["index.html"];
				const text = packages.map((p) => `${p.name} ${p.version} (${p.license})\n${p.text}\n`).join("\n");

				if (page?.type !== "asset") throw new Error("the page was not built");
				page.source = page.source
					.toString()
					.replace(
						"</body>",
						() => `\t<!--\nThis page contains:\n\n${text.replaceAll("--", "- -")}-->\n\t</body>`,
					);
				mkdirSync(dirname(list), { recursive: true });
				writeFileSync(
					list,
					`${JSON.stringify(
						packages.map(({ name, version, license }) => ({ name, version, license })),
						null,
						"\t",
					)}\n`,
				);
			},
		},
	};
}
