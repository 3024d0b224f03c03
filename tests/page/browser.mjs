/*
 * Drives chromium for the tests of the web page.  Reads commands as JSON, one a line, and answers each with
 * one line: {"value": ...} or {"error": "..."}.  It ends, and with it chromium, when its input ends.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const modules = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = modules("playwright-core");
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

const MOST_MS = 60_000;
/* Chromium also writes to the home folder. */
const home = mkdtempSync(join(tmpdir(), "memprof-test-"));
const browser = await chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox"],
	env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home },
});
let page, requests, errors, pending;

/* Events of a recording in progress come until the page is closed. */
const endless = (request) => request.url().includes("/live/events");

function watch() {
	const asked = new Set();

	requests = [];
	errors = [];
	pending = asked;
	page.on("request", (r) => {
		requests.push(r.url());
		if (!endless(r)) asked.add(r);
	});
	for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => asked.delete(r));
	page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
	page.on("pageerror", (e) => errors.push(String(e)));
}

/* Whether the page has drawn what it knows, and waits for no answer.  Effects draw some time after the answer is known:
 * so nothing may be waited for before two frames and after them. */
const drawn = async () => {
	const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
	const calm = () =>
		document.querySelector("h1, .failure") !== null &&
		document.querySelector(".waiting, [aria-busy=true]") === null;
	const before = calm();

	await frame();
	await frame();
	return before && calm();
};

/* The texts of a table's head, and the values of its rows: this runs in the page. */
const contents = (table) => {
	const heads = [...table.tHead.querySelectorAll("th:not(.opener)")];
	const rows = [...table.tBodies[0].querySelectorAll(":scope > tr:not(.detail)")];

	return {
		caption: table.caption?.textContent ?? "",
		columns: heads.map((th) => (th.querySelector("button") ?? th).firstChild?.textContent ?? ""),
		sorts: heads.map((th) => th.getAttribute("aria-sort")),
		rows: rows.map((tr) =>
			[...tr.querySelectorAll(":scope > :not(.opener)")].map((td) => td.dataset.value ?? td.textContent),
		),
	};
};

const commands = {
	/** Opens a URL as if for the first time. */
	async open({ url, width = 1280, height = 900, dark = false }) {
		await page?.context().close();
		const context = await browser.newContext({
			viewport: { width, height },
			colorScheme: dark ? "dark" : "light",
			reducedMotion: "reduce",
		});

		context.setDefaultTimeout(MOST_MS);
		page = await context.newPage();
		watch();
		await page.goto(url);
	},
	look: async ({ width, height = 900, dark }) => {
		await page.setViewportSize({ width, height });
		await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
	},
	/** Goes to another state of the page that is open. */
	go: ({ hash }) => page.evaluate((to) => void (location.hash = to), hash),
	/** Waits until the page has drawn all that it has asked for. */
	async settle() {
		const end = Date.now() + MOST_MS;

		while (!(await page.evaluate(drawn)) || pending.size > 0) {
			if (Date.now() > end)
				throw new Error(`not drawn: ${[...pending].map((r) => r.url())} ${await page.innerText("body")}`);
		}
	},
	wait: ({ selector, text }) =>
		(text === undefined ? page.locator(selector) : page.locator(selector).filter({ hasText: text }))
			.first()
			.waitFor(),
	texts: ({ selector }) => page.locator(selector).allInnerTexts(),
	attributes: ({ selector, name }) =>
		page.locator(selector).evaluateAll((found, n) => found.map((e) => e.getAttribute(n)), name),
	tables: () => page.evaluate(`[...document.querySelectorAll("main table:has(thead)")].map(${contents})`),
	click: ({ selector }) => page.locator(selector).first().click(),
	fill: ({ selector, value }) => page.locator(selector).first().fill(value),
	select: ({ selector, value }) => page.locator(selector).first().selectOption(value),
	focus: ({ selector }) => page.locator(selector).first().focus(),
	press: ({ key }) => page.keyboard.press(key),
	/** Drags over an element.  @from, @to: shares of its width. */
	async drag({ selector, from, to }) {
		const target = page.locator(selector).first();

		await target.scrollIntoViewIfNeeded();
		const box = await target.boundingBox();
		const y = box.y + box.height / 2;

		await page.mouse.move(box.x + from * box.width, y);
		await page.mouse.down();
		await page.mouse.move(box.x + ((from + to) / 2) * box.width, y);
		await page.mouse.move(box.x + to * box.width, y);
		await page.mouse.up();
	},
	evaluate: ({ expression }) => page.evaluate(expression),
	back: () => page.goBack(),
	reload: () => page.reload(),
	url: () => page.url(),
	async axe() {
		await page.evaluate(axe);
		const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));

		return found.violations.map((v) => [
			v.id,
			...v.nodes.map((n) => `${n.target.join(" ")}: ${n.failureSummary}`),
		]);
	},
	screenshot: async ({ path }) => void (await page.screenshot({ path, fullPage: true })),
	requests: () => requests,
	errors: () => errors,
};

try {
	for await (const line of createInterface({ input: process.stdin })) {
		const { command, ...given } = JSON.parse(line);
		let answer;

		try {
			answer = { value: (await commands[command](given)) ?? null };
		} catch (e) {
			answer = { error: String(e) };
		}
		process.stdout.write(`${JSON.stringify(answer)}\n`);
	}
} finally {
	await browser.close();
	rmSync(home, { recursive: true, force: true, maxRetries: 10 });
}
