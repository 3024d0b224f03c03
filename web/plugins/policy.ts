import { createHash } from "node:crypto";
import type { Plugin } from "vite";

/* Everything is in the file: no request may leave the machine, and no other script may run. */
function policy(html: string): string {
	const scripts = [...html.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)];
	const hashes = scripts.map(
		(s) =>
			`'sha256-${createHash("sha256")
				.update(s[1] ?? "")
				.digest("base64")}'`,
	);

	if (hashes.length !== 1) throw new Error(`the page has ${String(hashes.length)} scripts instead of one`);
	return [
		"default-src 'none'",
		`script-src ${hashes.join(" ")}`,
		"style-src 'unsafe-inline'",
		"img-src data:",
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
	].join("; ");
}

/** Puts a Content-Security-Policy into the built page, and checks that the place of the data is in it once. */
export function pagePolicy(): Plugin {
	return {
		name: "memprof-page-policy",
		enforce: "post",
		generateBundle: {
			/* After the other files were put into the page. */
			order: "post",
			handler(_options, bundle) {
				const page = bundle["index.html"];

				if (page?.type !== "asset") throw new Error("the page was not built");
				const html = page.source.toString();

				if (html.split("<!--memprof-data-->").length !== 2)
					throw new Error("<!--memprof-data--> must be in the page once");
				page.source = html.replace(
					"<head>",
					`<head>\n\t\t<meta http-equiv="Content-Security-Policy" content="${policy(html)}" />`,
				);
			},
		},
	};
}
