/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Culling: events are held back until they are older than a given age.  A block that ends earlier
 * is not written, with the reallocs that it went through; only its part in a sum is (struct
 * mp_culled).
 *
 * The caller knows which block an event ends.  It gets a number for each block whose allocation is
 * held back, and passes it on with the event that ends the block.
 */
#ifndef RECORD_CULLING_CULL_H
#define RECORD_CULLING_CULL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct cull;

#define CULL_NONE    UINT32_MAX /* no number; the others are below CULL_NUMBERS */
#define CULL_NUMBERS (1u << 31)

struct cull_config {
	uint64_t age_ns; /* blocks that live shorter are culled */
	uint32_t most; /* events to hold back; if there are more, the oldest are written earlier */
	/* Called before the allocation @ev of a block that has not ended is written: its number is not
	 * valid any more. */
	void (*let_go)(void *ctx, const struct mp_event *ev);
	/* A hint that let_go() may be called soon for the block at @addr. */
	void (*ahead)(void *ctx, uint64_t addr);
	void *ctx;
};

/* Return: NULL when out of memory. */
struct cull *cull_new(const struct cull_config *config, struct mpf_writer *file);
void cull_free(struct cull *c);
/* Makes @file the output.  No event must be held back at this time. */
void cull_set_file(struct cull *c, struct mpf_writer *file);

/*
 * The next event, in order; each function returns 0 or a negative errno.
 *
 * cull_begin(): the allocation of a block; @number is set to its number.
 * cull_end(): the end of block @number by free().
 * cull_pair(): both, without another event of the thread between them.
 * cull_put(): any other event, and those of blocks that must not be culled.
 */
int cull_begin(struct cull *c, const struct mp_event *ev, uint32_t *number);
int cull_end(struct cull *c, uint32_t number, const struct mp_event *ev);
int cull_pair(struct cull *c, const struct mp_event *born, const struct mp_event *by);
int cull_put(struct cull *c, const struct mp_event *ev);

/* The beginning of a realloc, for its end. */
struct cull_realloc {
	uint32_t node, use; /* CULL_NONE: it cannot be culled */
};
/* cull_resize(): realloc() begins on block @number.  cull_resized(): it succeeded; @number is set to
 * that of the new block, or to CULL_NONE. */
int cull_resize(struct cull *c, uint32_t number, const struct mp_event *ev,
		struct cull_realloc *begun);
int cull_resized(struct cull *c, const struct cull_realloc *begun, const struct mp_event *ev,
		 uint32_t *number);

/*
 * A block whose allocation is not held back, because its end is known to follow.
 * cull_begin_short(): @tid allocates it, at @addr.  cull_end_short(): @by ends the block of @born.
 */
int cull_begin_short(struct cull *c, uint32_t tid, uint64_t addr);
int cull_end_short(struct cull *c, const struct mp_event *born, const struct mp_event *by);

/* Return: the allocation of block @number, valid until the next event. */
const struct mp_event *cull_born(const struct cull *c, uint32_t number);
/* Prefetches what cull_end() needs of block @number. */
void cull_prefetch(const struct cull *c, uint32_t number);
/* Block @number will not be culled: when it ends is not known any more. */
void cull_forget(struct cull *c, uint32_t number);

/* Writes the events that are old enough at @now_ns (UINT64_MAX: all).  Return: 0 or a negative
 * errno. */
int cull_advance(struct cull *c, uint64_t now_ns);
/* Writes the sums that are not in the file yet; the slice of time continues.  Return: 0 or a negative
 * errno. */
int cull_write_sums(struct cull *c);
/* Writes them and ends the slice: blocks that are allocated from @now_ns on are in other sums than
 * those before.  Return: as cull_write_sums(). */
int cull_put_sums(struct cull *c, uint64_t now_ns);
/* Return: whether events are written at once, because few blocks could be culled. */
bool cull_is_suspended(const struct cull *c);
/* Return: the number of sums that are not in the file yet. */
uint64_t cull_count_sums(const struct cull *c);

/* Calls whose events are held back or in sums that are not in the file yet. */
struct cull_waiting {
	uint64_t allocations, frees, reallocs, maps; /* reallocs: two for each, begin and end */
};
struct cull_waiting cull_waiting(const struct cull *c);

#endif
