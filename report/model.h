/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording as a report sees it: one streaming pass that replays the live set.  Definitions:
 *
 *	leaked, live	allocated during the recording and not freed in it
 *	temporary	freed by the thread that allocated it, before that thread allocated again
 *	size		bytes requested; usable: bytes the allocator really gave
 *	foreign free	free of a block that is older than the recording
 * A successful realloc ends the old block and begins a new one.
 */
#ifndef REPORT_MODEL_H
#define REPORT_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "formats/session.h"
#include "lib/err.h"
#include "lib/estimate.h"
#include "lib/vec.h"
#include "report/history.h"
#include "unwind/symbols.h"

/* All allocations with one stack. */
struct group {
	uint64_t allocations, frees, allocated_bytes, usable_bytes, temporary, temporary_bytes;
	uint64_t live_blocks, live_bytes, live_usable;
	uint64_t peak_bytes, peak_blocks; /* what it held when the whole heap was at its peak */
	uint64_t first_ns, last_ns;	  /* of its allocations */
	uint64_t map_bytes, maps;	  /* mappings made here, the allocator's own left out */
	/* Of a sampled recording, whose numbers of blocks and bytes are estimates. */
	double variance_allocations, variance_allocated, variance_live;
};

struct model_stack {
	uint64_t first; /* index in model.pc */
	uint32_t n, flags;
};

struct model_hook {
	char *name, *module;
	uint8_t kind;
	uint64_t calls;
};

struct model_thread {
	uint32_t tid;
	char *name;
	uint64_t allocations, frees, allocated_bytes;
};

/* A moment with a name. */
struct mark {
	uint64_t time_ns;
	char *name;
};

struct point {
	uint64_t time_ns, live_bytes, live_blocks, allocations, frees;
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
	struct model_stack *stack;
	uint32_t nstacks; /* ids are below */
	VEC(uint64_t) pc;
	VEC(struct model_hook) hooks;
	VEC(struct model_thread) threads;
	VEC(struct mp_module) modules;
	VEC(struct mp_sample) samples;
	VEC(struct point) timeline;
	VEC(struct mark) marks;
	VEC(struct model_block) blocks; /* live at the end, by address */
	struct group total;
	uint64_t peak_bytes, peak_blocks, peak_time_ns;
	uint64_t events, foreign_frees, housekeeping_frees, foreign_reallocs, mismatches,
	    failed_reallocs;
	uint64_t culled_blocks, culled_bytes; /* in the sums, but not as blocks of their own */
	uint64_t mapped_bytes, inner_maps, unmaps;
	uint64_t end_ns;
	struct mp_losses losses;
	struct mp_finish finish;
	bool has_finish;
	char *truncated; /* NULL: the file is whole */
	char *path;	 /* of the recording */
	struct symbols *symbols;
	struct names *names;
};

/* Return: 0 with @m filled (freed by model_free()), or a negative errno with @err. */
int model_load(const char *path, struct model *m, struct mp_err *err);
void model_free(struct model *m);

/* The events of the recording once more, told to @sink.  Return: 0, or a negative errno with @err.
 */
int model_replay(const struct model *m, const struct history_sink *sink,
		 const struct history_until *until, struct mp_err *err);

/* Return: the module that @address was in last, or NULL. */
const struct mp_module *model_module(const struct model *m, uint64_t address);

/* Frames of one address, innermost inlined first.  Return: number, at least 1.  Valid while @m is.
 */
uint32_t model_frames(struct model *m, uint64_t pc, struct frame *out, uint32_t max);

/* What the block stands for when the recording is a sample; itself when not. */
struct estimate model_estimate(const struct model *m, const struct model_block *b);

/* Standard error of a sum with this estimated variance. */
double group_error(double variance);

/* What a report weighs stacks by. */
enum cost { COST_LEAKED, COST_ALLOCATED, COST_COUNT, COST_PEAK, COST_TEMPORARY };
uint64_t group_cost(const struct group *g, enum cost cost);
/* Blocks, for costs in bytes; calls otherwise. */
uint64_t group_count(const struct group *g, enum cost cost);
const char *cost_text(enum cost cost);
bool cost_is_bytes(enum cost cost);

#endif
