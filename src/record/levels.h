/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How much is live, in all and of each stack, and the peaks.  A culled recording gets it: over time
 * (struct mp_section) and at the peaks (struct mp_stack_peak), with the blocks that are culled.
 */
#ifndef RECORD_LEVELS_H
#define RECORD_LEVELS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/vec.h"

struct stack_level {
	uint64_t live_bytes, live_blocks;
	uint64_t most_bytes, most_ns;
	uint64_t peak_bytes, peak_blocks, epoch; /* what was live at the peak number @epoch */
	bool changed;				 /* in this file */
};

struct levels {
	struct mp_section section; /* the current one; its end is not reached yet */
	uint64_t begin_ns;	   /* its begin */
	uint64_t file_ns;	   /* begin of the file */
	struct {
		uint64_t bytes, blocks, time_ns;
	} peak;				/* of all stacks, in the file */
	uint64_t epoch;			/* number of peaks so far */
	VEC(struct stack_level) stacks; /* by id */
};

/* A change of what is live.  Bytes and blocks: of one block, or of those that it represents. */
struct level_change {
	uint64_t time_ns, bytes, blocks;
	uint32_t stack;
	bool ends;    /* the block ends; else it begins */
	bool carried; /* it was live before the file begins, so it is not an allocation */
};

void levels_free(struct levels *l);
/* Return: what stack @id has; zeros if it is not known. */
struct stack_level levels_of(const struct levels *l, uint32_t id);
/* Return: what stack @id has, to be changed; NULL when out of memory. */
struct stack_level *levels_stack(struct levels *l, uint32_t id);
/* Begins a file at @begin_ns: what is live remains. */
void levels_begin(struct levels *l, uint64_t begin_ns);
/* Writes the sections that have ended by @now_ns to @file.  To be called before the changes of that
 * time.  Return: 0 or a negative errno. */
int levels_time(struct levels *l, uint64_t now_ns, struct mpf_writer *file);
/* Return: 0 or -ENOMEM. */
int levels_change(struct levels *l, const struct level_change *c);
/* levels_change() for a block that begins, @c, and ends before anything else changes. */
int levels_pair(struct levels *l, const struct level_change *c);
/* Ends the file: writes the last section and what the stacks had.  @ids: the stacks' ids in the file; NULL:
 * as they are.  Return: 0 or a negative errno. */
int levels_end(struct levels *l, uint64_t end_ns, const uint32_t *ids, struct mpf_writer *file);

#endif
