/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording as seen by reports, read in one streaming pass that replays the live table.
 *
 * Definitions:
 *
 * - leaked, live: allocated during the recording and not freed in it
 *
 * - temporary: freed by the thread that allocated it, before that thread allocated again
 *
 * - size: bytes requested; usable: bytes that the allocator really gave
 *
 * - foreign free: free of a block that the recording has no allocation of
 *
 * A successful realloc ends the old block and begins a new one.
 *
 * With a filter, all sums are those of a recording that has only the allocations that pass it;
 * model.all has the sums of all.  Which allocations are temporary is always decided by all events.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "formats/session.h"
#include "lib/err.h"
#include "lib/estimate.h"
#include "lib/vec.h"
#include "model/filter.h"
#include "model/history.h"
#include "model/tids.h"
#include "unwind/symbols.h"

/* All allocations with the same stack; or all page faults, whose pages then count as allocated. */
struct group {
	/* The members that every allocation and free changes are together, to share cache lines. */
	uint64_t allocations, allocated_bytes, frees, usable_bytes;
	uint64_t live_blocks, live_bytes, live_usable;
	uint64_t peak_epoch; /* the peak of peak_bytes: model/totals.c */
	uint64_t temporary, temporary_bytes;
	uint64_t most_bytes, most_ns;	  /* its own peak, and when that was first reached */
	uint64_t first_ns, last_ns;	  /* of its first and last allocation */
	uint64_t peak_bytes, peak_blocks; /* what it held when the whole heap was at its peak */
	uint64_t major, huge, huge_bytes; /* page faults: major ones, and those of huge pages */
	uint64_t map_bytes, maps; /* mappings made by the program; not the allocator's own */
	/* For a sampled recording, in which numbers of blocks and bytes are estimates. */
	double variance_allocations, variance_allocated, variance_blocks, variance_live;
	uint64_t uncertain_blocks; /* live blocks whose free might have been lost */
};

struct model_stack {
	uint64_t first; /* index in model.pc */
	uint32_t n, flags;
};

enum family { FAMILY_UNKNOWN, FAMILY_GLIBC, FAMILY_JEMALLOC, FAMILY_TCMALLOC, FAMILY_MIMALLOC };

struct model_hook {
	char *name, *module;
	uint8_t kind;
	enum family family;
	bool has_chunks; /* one of its blocks had properties that only glibc's have */
	uint64_t calls;
};

struct model_thread {
	uint32_t tid;
	char *name;
	uint64_t allocations, allocated_bytes, temporary, live_bytes, live_blocks;
	uint64_t frees; /* frees made by the thread, no matter who allocated the blocks */
};

/* A process of a merged recording, with the sums of its blocks. */
struct model_process {
	struct mp_process of; /* strings owned */
	uint64_t allocations, allocated_bytes, frees, live_bytes, live_blocks;
};

/* Classes for blocks of 0 bytes, of 1, of 2, of 3 to 4, of 5 to 8 ... and for culled ones, whose
 * sizes are not recorded. */
struct size_class {
	uint64_t allocations, allocated_bytes, usable_bytes, temporary;
	uint64_t live_blocks, live_bytes, live_usable;
};
#define SIZE_CLASS_CULLED 65u
#define SIZE_CLASSES	  66u

static inline uint32_t size_class_of(uint64_t size)
{
	return size > 1 ? 65u - (uint32_t)__builtin_clzll(size - 1) : (uint32_t)size;
}

/* A named moment. */
struct mark {
	uint64_t time_ns;
	char *name;
};

/* A section of the timeline. */
struct timeline_point {
	uint64_t time_ns;		  /* its end; it begins at the end of the one before */
	uint64_t live_bytes, live_blocks; /* at its end */
	uint64_t peak_bytes, peak_blocks; /* highest value in it */
	uint64_t allocations, frees;	  /* in this section */
	uint64_t allocated_bytes, freed_bytes;
};

/* A call of mallopt(). */
struct model_mallopt {
	uint64_t time_ns;
	uint32_t tid, stack;
	int32_t param, value, result;
};

struct frame {
	const char *function;			     /* never NULL */
	const char *raw_function, *source, *library; /* may be NULL */
	uint32_t line, column;
	uint64_t address;
	bool is_inline;
};

struct model {
	struct mp_info info;
	struct mpf_reader *reader; /* owns info's strings */
	struct group *group;	   /* [stack id]; 0: no stack */
	struct group *all;	   /* as group, without the filter; NULL: there is no filter */
	struct model_stack *stack;
	uint32_t nstacks; /* ids are below this */
	VEC(uint64_t) pc;
	VEC(struct model_hook) hooks;
	VEC(struct model_process) processes; /* of a merged recording, by number */
	VEC(struct model_thread) threads;
	struct tid_table tids; /* index in threads */
	struct size_class size_class[SIZE_CLASSES];
	VEC(struct model_mallopt) mallopts;
	VEC(struct mp_map_usage) map_usage; /* by time, then address; paths owned */
	VEC(struct mp_module) modules;
	VEC(struct mp_sample) samples;
	VEC(struct timeline_point) timeline;
	VEC(struct mark) marks;
	VEC(struct model_block) blocks; /* live at the end, sorted by address; if requested */
	struct group total, all_total;
	uint64_t unsized; /* page faults without a size: counted as smallest pages */
	uint64_t unjudged_blocks, unjudged_bytes; /* culled; the filter cannot decide */
	uint64_t peak_bytes, peak_blocks, peak_time_ns;
	uint64_t events, foreign_frees, housekeeping_frees, foreign_reallocs, mismatches,
	    failed_reallocs;
	uint64_t uncertain_blocks; /* upper bound of the live blocks that were in fact freed */
	uint64_t carried_blocks, carried_bytes; /* live at the hand-over from the recorder before */
	uint64_t culled_blocks, culled_bytes;	/* in the sums, but not as single blocks */
	uint64_t mapped_bytes, inner_maps, unmaps;
	uint64_t end_ns;
	struct mp_losses losses;
	struct mp_finish finish;
	bool has_finish;
	bool quick;		     /* read from the index only: model/quick.h */
	char *truncated;	     /* why the file is truncated; NULL: it is complete */
	char *path;		     /* of the recording */
	struct selection *selection; /* NULL: no filter */
	struct history_progress progress;
	struct symbols *symbols;
	struct names *names;
};

struct model_options {
	const struct filter *filter; /* NULL: everything; must outlive the model */
	bool blocks; /* fill model.blocks, which takes memory for every live block */
	struct history_progress progress;
};

/**
 * model_load() - read a recording: once, or twice with a filter
 * @o: NULL: no filter, no blocks, no progress
 *
 * Return: 0 with @m filled (to be freed by model_free()), or a negative errno with @err.
 */
int model_load(const char *path, const struct model_options *o, struct model *m,
	       struct mp_err *err);
void model_free(struct model *m);
/* Makes an empty model, for quick_load().  Return: 0, or -ENOMEM with @err; in both cases to be
 * freed by model_free(). */
int model_begin(struct model *m, const char *path, const struct history_progress *progress,
		struct mp_err *err);

/* Reads the recording again: all items, and the blocks that pass the filter.  Return: 0, or a
 * negative errno with @err. */
int model_replay(const struct model *m, const struct history_sink *sink,
		 const struct history_until *until, struct mp_err *err);

/* Return: the thread, added if it is new, or NULL when out of memory; valid until the next call. */
struct model_thread *model_thread(struct model *m, uint32_t tid);

/* Sets model_hook.family, after all events were seen. */
void model_find_allocators(struct model *m);
enum allocator model_allocator(const struct model *m, const struct model_block *b);

/* Return: the module that contained @address last, or NULL. */
const struct mp_module *model_module(const struct model *m, uint64_t address);

/* Finds the frames of one address, innermost inlined one first.  Return: their number, at least 1.
 * Valid as long as @m. */
uint32_t model_frames(struct model *m, uint64_t pc, struct frame *out, uint32_t max);

/* How many blocks and bytes the block represents in a sample; only itself otherwise. */
struct estimate model_estimate(const struct model *m, const struct model_block *b);
struct estimate model_weigh(uint64_t sample_interval, const struct model_block *b);

/* Standard error of a sum with this estimated variance. */
double group_error(double variance);

/* The name of a mapping; never NULL. */
const char *map_usage_name(const struct mp_map_usage *u);

/* Adds the sums of @g to @sum; times and the like are not changed. */
void group_add(struct group *sum, const struct group *g);

/* The measure by which a report sorts and weighs stacks. */
enum cost {
	COST_LEAKED,
	COST_ALLOCATED,
	COST_COUNT,
	COST_PEAK,
	COST_TEMPORARY,
	COST_MAPPED, /* bytes of mappings that the program made, also of unmapped ones */
	/* Only for a recording of page faults, which has no other costs. */
	COST_FAULTED, /* bytes of the faults' pages */
	COST_FAULTS,
	COST_MAJOR,
};
uint64_t group_cost(const struct group *g, enum cost cost);
/* Return: blocks, for costs in bytes; calls, for the others; faults, for page faults. */
uint64_t group_count(const struct group *g, enum cost cost);
/* The unit of group_count(): block, allocation or fault. */
const char *cost_unit(enum cost cost);
bool cost_is_of_faults(enum cost cost);
const char *cost_text(enum cost cost);
bool cost_is_bytes(enum cost cost);

#endif
