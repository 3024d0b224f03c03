/* Columns of tables whose rows have the sums of an endpoint such as libraries. */
import type { ViewSums } from "../api";
import { bytes, count } from "../format";
import type { Column } from "./table";

type Summed = Omit<ViewSums, "peak_size">;

export const live: Column<Summed> = {
	key: "live",
	title: "Live at the end",
	value: (r) => r.leaked_size,
	show: (r) => bytes(r.leaked_size),
	number: true,
};

export const liveBlocks: Column<Summed> = {
	key: "blocks",
	title: "Live blocks",
	value: (r) => r.leaked_count,
	show: (r) => count(r.leaked_count),
	number: true,
	minor: true,
};

/** @key: its name in the URL. */
export const allocated = (key: string): Column<Summed> => ({
	key,
	title: "Allocated",
	value: (r) => r.size,
	show: (r) => bytes(r.size),
	number: true,
});

export const allocations: Column<Summed> = {
	key: "count",
	title: "Allocations",
	value: (r) => r.allocated_count,
	show: (r) => count(r.allocated_count),
	number: true,
};

export const temporary: Column<Summed> = {
	key: "temporary",
	title: "Temporary",
	about: "freed before the next allocation of the thread",
	value: (r) => r.temporary_count,
	show: (r) => count(r.temporary_count),
	number: true,
	minor: true,
};
