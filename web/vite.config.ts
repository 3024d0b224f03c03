import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { serverFilters } from "./plugins/filters";
import { licences } from "./plugins/licences";
import { pagePolicy } from "./plugins/policy";

/* scripts/build-page sets it: where make wants the page. */
const out = process.env.PAGE_OUT ?? "../build/web";

const served = process.env.MEMPROF_SERVER ?? "http://127.0.0.1:8080";
/* The server wants the Host and Origin of the page to agree. */
const proxied = { target: served, changeOrigin: false };

export default defineConfig({
	base: "./",
	esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
	plugins: [serverFilters(), viteSingleFile(), licences(`${out}/packages.json`), pagePolicy()],
	/* npm run dev: the page of a running memprof server, drawn again when a source changes. */
	server: { proxy: { "/data": proxied, "/list": proxied } },
	build: {
		outDir: out,
		emptyOutDir: false,
		target: "es2022",
		modulePreload: false,
		reportCompressedSize: false,
	},
});
