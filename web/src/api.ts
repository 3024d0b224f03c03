/* The answers of memprof's server (src/server/openapi.json); only the members that the page uses. */

export interface Time {
	secs: number;
	fract_nsecs: number;
}

export type Shape = "growing" | "plateau" | "burst" | "sawtooth";

/** What every answer about a recording begins with. */
export interface Info {
	id: string;
	memprof_version: string;
	executable: string;
	called: string | null;
	cmdline: string;
	architecture: string;
	pid: number;
	event: "allocations" | "page-faults";
	mode: "attach" | "run";
	sample_interval: number;
	overhead_budget?: number;
	culled_below_ns: number;
	estimated: boolean;
	timestamp: Time;
	runtime: Time;
	end_reason: string;
	restored: boolean;
	attach_stop_ns: number;
	detach_stop_ns: number;
	truncated: string | null;
}

export interface Recording extends Info {
	in_progress: boolean;
	final_allocated: number;
	final_allocated_count: number;
	error?: undefined;
}

export interface Unreadable {
	id: string;
	error: string;
}

export interface Frame {
	address: number;
	address_s: string;
	function: string | null;
	raw_function?: string | null;
	library?: string | null;
	source?: string | null;
	line?: number | null;
	column?: number | null;
	is_inline: boolean;
	/** The report leaves it out: an inner frame of a run of the runtime's (doc/stacks.md). */
	folded?: boolean;
}

export interface Sums {
	allocated_count: number;
	size: number;
	usable_size: number;
	freed_count: number;
	leaked_count: number;
	leaked_bytes: number;
	uncertain_count: number;
	temporary_count: number;
	peak_bytes: number;
	peak_count: number;
	maps: number;
	map_bytes: number;
	standard_error_allocations?: number;
	standard_error_allocated_bytes?: number;
	standard_error_leaked_count?: number;
	standard_error_leaked_bytes?: number;
}

/** Where a site is: by line, function, library or class. */
export interface Where {
	function?: string | null;
	class?: string | null;
	library?: string | null;
	source?: string | null;
	line?: number;
}

export interface Site extends Where, Sums {
	stacks: number;
	backtrace_id: number;
}

export interface Group extends Sums {
	backtrace_id: number;
	site: number;
	shape: Shape | null;
	min_timestamp_relative: Time;
	max_timestamp_relative: Time;
	/** Outermost frame first. */
	backtrace: Frame[];
	user_frame: number | null;
	complete: boolean;
}

export interface Piece {
	timestamp_relative: Time;
	live_bytes: number;
	live_count: number;
	peak_bytes: number;
	peak_count: number;
	allocations: number;
	frees: number;
	allocated_bytes: number;
	freed_bytes: number;
}

export interface Sample {
	timestamp_relative: Time;
	rss: number;
	anonymous: number;
	file: number;
	swap: number;
}

export interface Marker {
	timestamp_relative: Time;
	name: string;
}

export interface Totals {
	events: number;
	allocations: number;
	allocated_bytes: number;
	frees: number;
	leaked_count: number;
	leaked_bytes: number;
	uncertain_count: number;
	temporary: number;
	temporary_bytes: number;
	peak_bytes: number;
	peak_count: number;
	peak_at: Time;
	culled_count: number;
	culled_bytes: number;
	peak_has_culled: boolean;
	mapped_bytes: number;
	unique_backtrace_count: number;
	standard_error_allocations?: number;
	standard_error_allocated_bytes?: number;
	standard_error_leaked_count?: number;
	standard_error_leaked_bytes?: number;
}

export interface Thinning {
	thinned_allocations: number;
	thinned_bytes: number;
}

export type Losses = Record<string, number>;

/** Sums of the whole recording beside a filtered report. */
export interface Whole {
	allocations: number;
	allocated_bytes: number;
	leaked_count: number;
	leaked_bytes: number;
	not_judged_count: number;
	not_judged_bytes: number;
}

export interface MissingSymbols {
	library: string;
	path: string;
	addresses: number;
	without_function: number;
	without_line: number;
	debug_package: string | null;
	debug_url: string | null;
}

export interface StackEnds {
	library: string | null;
	reason: string;
	stacks: number;
	count: number;
}

/** `quick`: what the index of a recording says. */
export interface Quick extends Info {
	totals: Pick<
		Totals,
		"leaked_count" | "leaked_bytes" | "peak_bytes" | "peak_count" | "peak_at" | "peak_has_culled"
	>;
	losses: Losses;
	thinning: Thinning | null;
	sites: QuickSite[];
}

/** Only what is live of a site. */
export type QuickSite = Where & Pick<Site, "stacks" | "backtrace_id" | "leaked_count" | "leaked_bytes">;

export interface Report extends Info {
	thinning: Thinning | null;
	totals: Totals;
	all: Whole | null;
	losses: Losses;
	incomplete_stacks: StackEnds[];
	missing_symbols: MissingSymbols[];
	threads: { thread: number; name: string; allocations: number; allocated_bytes: number; frees: number }[];
	timeline: Piece[];
	samples: Sample[];
	markers: Marker[];
	sites: Site[];
	allocation_groups: Group[];
}

export interface GrowthSite extends Where {
	stacks: number;
	backtrace_id: number;
	shape: Shape | null;
	growth_bytes: number;
	growth_per_minute: number | null;
	leaked_bytes: number;
	leaked_count: number;
	allocated_count: number;
	size: number;
	/** Live bytes at moments `point` apart. */
	levels: number[];
}

export interface Growth extends Info {
	group_by: string;
	point: Time;
	growth_since: Time;
	sites: GrowthSite[];
	total_count: number;
}

export interface ViewSums {
	allocated_count: number;
	size: number;
	leaked_count: number;
	leaked_size: number;
	temporary_count: number;
	peak_size: number;
}

export interface Libraries {
	libraries: { library: string | null; direct: ViewSums; anywhere: ViewSums }[];
}

export interface Threads {
	threads: {
		thread: number;
		name: string | null;
		allocated_count: number;
		size: number;
		leaked_count: number;
		leaked_size: number;
		temporary_count: number;
		frees: number;
	}[];
}

export interface Sizes {
	sizes: {
		size_min: number;
		size_max: number;
		allocated_count: number;
		size: number;
		leaked_count: number;
		leaked_size: number;
		temporary_count: number;
	}[];
}

/** A frame of the lists of single allocations and maps: they lack what is not known. */
export interface ListedFrame {
	address: number;
	address_s: string;
	function?: string;
	raw_function?: string;
	library?: string;
	source?: string;
	line?: number;
	column?: number;
	is_inline: boolean;
}

export interface Deallocation {
	timestamp_relative: Time;
	thread: number;
	backtrace_id?: number;
	backtrace?: ListedFrame[];
}

export interface Allocation {
	id: number;
	address: number;
	address_s: string;
	timestamp_relative: Time;
	thread: number;
	size: number;
	extra_space: number;
	backtrace_id: number;
	/** Outermost frame first. */
	backtrace: ListedFrame[];
	deallocation?: Deallocation;
	allocator: string;
	position_in_chain: number;
	chain_length: number;
	/** Of a sample: how many allocations it stands for. */
	represents?: number;
}

/** `allocations` */
export interface SingleAllocations {
	allocations: Allocation[];
	total_count: number;
	estimated?: true;
	culled_count?: number;
}

export interface MapSource {
	timestamp_relative: Time;
	thread: number;
	backtrace_id: number;
	backtrace: ListedFrame[];
}

export interface MapRegion {
	address_s: string;
	size: number;
	timestamp_relative: Time;
	is_readable: boolean;
	is_writable: boolean;
	is_executable: boolean;
	/** null: not known. */
	is_shared: boolean | null;
	name: string;
}

export interface Mapping extends MapRegion {
	id: number;
	address: number;
	source?: MapSource;
	deallocation?: { timestamp: Time; source?: MapSource };
	/** null: no look had it. */
	peak_rss: number | null;
	regions?: MapRegion[];
	usage_history?: { timestamp_relative: Time; rss: number; anonymous: number; swap: number }[];
}

/** `maps` */
export interface Maps {
	maps: Mapping[];
	total_count: number;
}

/** `timeline_maps`: arrays of the same length; xs: Unix time in milliseconds. */
export interface MapsTimeline {
	xs: number[];
	address_space: number[];
	rss: number[];
	anonymous: number[];
	swap: number[];
}

export interface DiffSide {
	id: string;
	cmdline: string | null;
	pid: number;
	timestamp_relative: Time;
	cost: number;
	count: number;
	sample_interval: number;
	standard_error?: number;
}

export interface DiffFrame {
	function: string;
	library?: string;
	source?: string;
	line?: number;
}

export interface DiffGroup {
	before: number;
	after: number;
	change: number;
	before_count: number;
	after_count: number;
	change_count: number;
	/** Outermost frame first. */
	backtrace: DiffFrame[];
}

export interface Diff {
	cost: string;
	before: DiffSide;
	after: DiffSide;
	groups: DiffGroup[];
}

/** Sums as the recorder has them now; rates are missing at the first look. */
export interface Look {
	timestamp: Time;
	timestamp_relative: Time;
	live_bytes: number;
	live_blocks: number;
	allocations: number;
	allocated_bytes: number;
	frees: number;
	resident_bytes: number | null;
	growth_per_second?: number;
	allocations_per_second?: number;
	allocated_bytes_per_second?: number;
	estimated: boolean;
	live_bytes_error: number;
	lost_events: number;
	thinned_allocations: number;
	behind_ns: number;
	paused: boolean;
	ended: boolean;
}

/** One entry for each look; xs: Unix time in milliseconds; 0 of resident_bytes: not known. */
export interface Looks {
	xs: number[];
	live_bytes: number[];
	resident_bytes: number[];
}

export interface LiveRow {
	name: string | null;
	library: string | null;
	source: string | null;
	line: number | null;
	thread: number | null;
	stacks: number;
	live_bytes?: number;
	live_blocks?: number;
	growth_per_second?: number;
	allocations_per_second: number;
	allocated_bytes_per_second: number;
	temporary_share: number | null;
	allocations: number;
	allocated_bytes: number;
	backtrace_id?: number;
	/** Outermost frame first; function is missing where it is the raw one. */
	backtrace?: (Omit<Frame, "function"> & { function?: string | null })[];
}

export interface LiveRows {
	rows: LiveRow[];
	total_count: number;
}

export interface Amount {
	count: number;
	bytes: number;
}

/** Leaked blocks of one kind and stack. */
export interface LeakCluster {
	type: string | null;
	owner: string | null;
	size: number;
	count: number;
	bytes: number;
	indirect_count: number;
	indirect_bytes: number;
	cycles: number;
	suppressed: boolean;
	preview: string | null;
	/** Addresses of some of the blocks. */
	samples: string[];
	stack: Frame[] | null;
	age_ns: number | null;
}

/** memprof leaks --json */
export interface LeakReport {
	pid: number;
	pause_ns: number;
	exact: boolean;
	unknown_allocator: string | null;
	heaps: { allocator: string; doubt: string | null; damaged: { what: string }[] }[];
	coverage: { unreadable_bytes: number };
	live: Amount;
	leaked: Amount;
	garbage: Amount;
	recording: { unknown_count: number; unknown_bytes: number; uncertain_count: number } | null;
	clusters: LeakCluster[];
}

/** What keeps memory, or a kind of blocks, and below it what that keeps. */
export interface Keeper {
	kind: string;
	name: string | null;
	module: string | null;
	source: string | null;
	line: number;
	thread: number;
	address_s: string;
	size: number;
	count: number;
	own_bytes: number;
	retained_bytes: number;
	retained_blocks: number;
	exact_bytes: number;
	roots: number;
	type: string | null;
	container: { type: string; elements: number } | null;
	allocated_at: { function: string; source: string | null; line: number } | null;
	root_names: string[];
	children: Keeper[];
}

/** memprof heap --retained --json */
export interface Retained {
	pid: number;
	pause_ns: number;
	exact: boolean;
	unknown_allocator: string | null;
	live: Amount;
	unreachable: Amount;
	unreadable_bytes: number;
	notes: string[];
	retained: Keeper;
}
