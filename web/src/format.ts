import type { Time, Where } from "./api";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three significant digits or whole bytes, as `1.50 MiB`. */
export function bytes(n: number): string {
	let value = Math.abs(n);
	let unit = 0;

	while (value >= 1024 && unit < UNITS.length - 1) {
		value /= 1024;
		unit++;
	}
	const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;

	return `${n < 0 ? "−" : ""}${value.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

/** As bytes(), with a sign. */
export function change(n: number): string {
	return n > 0 ? `+${bytes(n)}` : bytes(n);
}

const whole = new Intl.NumberFormat("en");

/** With separators of thousands, as `1,234,567`. */
export function count(n: number): string {
	return whole.format(Math.round(n));
}

export function percent(part: number, all: number): string {
	return all > 0 ? `${((100 * part) / all).toFixed(1)} %` : "–";
}

/** In seconds. */
export function seconds(t: Time): number {
	return t.secs + t.fract_nsecs / 1e9;
}

/** A time since the start or a length, in seconds, as `2h 03m`, `4m 05s`, `1.50 s` or `20 ms`. */
export function duration(s: number): string {
	if (s >= 3600) return `${Math.floor(s / 3600)}h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
	if (s >= 60) return `${Math.floor(s / 60)}m ${String(Math.floor(s % 60)).padStart(2, "0")}s`;
	if (s >= 1) return `${s.toFixed(s >= 10 ? 1 : 2)} s`;
	return s === 0
		? "0 s"
		: s >= 1e-3
			? `${(s * 1e3).toFixed(s >= 0.1 ? 0 : 1)} ms`
			: `${(s * 1e6).toFixed(0)} µs`;
}

/** A moment of Unix time in the browser's time zone. */
export function moment(t: Time): string {
	return new Date(1000 * seconds(t)).toLocaleString("sv-SE");
}

/** As a filter takes it: a duration since the start with milliseconds. */
export function timeFilter(s: number): string {
	return `${Math.max(0, Math.round(s * 1000))}ms`;
}

/** The last part of a path. */
export function base(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1);
}

/** What a site is called. */
export function siteName(s: Where): string {
	return s.class ?? s.function ?? s.library ?? "unknown";
}

/** `file.c:12`, or the library, or nothing. */
export function sitePlace(s: Where): string {
	if (s.source) return s.line ? `${base(s.source)}:${s.line}` : base(s.source);
	return s.library ?? "";
}
