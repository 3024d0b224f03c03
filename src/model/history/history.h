/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Turns the events of a recording into the history of each block: its allocation and its end.  Only
 * this code pairs up reallocs, detects foreign frees and decides what is temporary, so that every
 * view and format counts alike.  Definitions are in model/model.h.
 */
#ifndef MODEL_HISTORY_HISTORY_H
#define MODEL_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/err.h"

struct model_block {
	uint64_t addr, size, usable, time_ns;
	uint64_t ordinal; /* number of the allocation, or page fault, in the recording, from 0 */
	uint32_t stack, tid;
	uint32_t chain; /* for history_chain(); 0: it was not reallocated yet */
	uint16_t hook;
	uint16_t process; /* process number, in a merged recording */
	uint8_t flags;
	uint8_t weight;	     /* the block represents 2^weight (model/sums/weight.h) */
	uint32_t in_realloc; /* by history_live(): thread that is inside its realloc; 0: none */
};

/* A chain of blocks, each made by realloc() of the one before, as seen from its last member so far.
 */
struct history_chain {
	uint64_t ordinal, time_ns, size; /* of the first member */
	uint64_t length;		 /* number of members so far */
};

/* How a block left the live table. */
enum block_end {
	BLOCK_FREED,
	BLOCK_TEMPORARY, /* freed by its thread, before that thread allocated again */
	BLOCK_LOST, /* its address was allocated again: the free was lost, or comes later and is
		       then ignored */
};

/* Callbacks, called in the order of the recording, by the thread that calls history_read().
 * history_chain() is the only function that they can call on the history, which may be ahead of
 * them.  Each returns 0, or a negative errno that ends the pass.  NULL members are not called. */
struct history_sink {
	int (*item)(void *ctx, const struct mpf_item *item); /* every item but events */
	int (*event)(void *ctx,
		     const struct mp_event *ev); /* every event, before what it says of blocks */
	int (*allocated)(void *ctx, const struct model_block *b);
	/* Some events ahead, as a hint for prefetching: a block with this stack might be reported
	 * soon. */
	void (*ahead)(void *ctx, uint32_t stack);
	int (*faulted)(void *ctx, const struct model_block *page);
	int (*ended)(void *ctx, const struct model_block *b, const struct mp_event *by,
		     enum block_end how);
	void *ctx;
	/* The sink, and the caller of history_live(), need neither time nor ordinal of blocks that are
	 * not just allocated: these are 0, which takes less memory and time. */
	bool without_moments;
};

/* Does the block continue at another address or size? */
static inline bool history_continues(const struct mp_event *by, enum block_end how)
{
	return how != BLOCK_LOST && by->kind == EV_REALLOC_END && by->addr;
}

struct history_counts {
	uint64_t events, foreign_frees, housekeeping_frees, foreign_reallocs, mismatches,
	    failed_reallocs;
};

struct history;

/* Return: a history without events that calls @sink (copied), or NULL when out of memory. */
struct history *history_new(const struct history_sink *sink);
void history_free(struct history *h);
const struct history_counts *history_counts(const struct history *h);
/* Which blocks are reported to the sink; @has NULL: all.  It may be called by any thread, also for
 * several blocks at a time. */
struct history_filter {
	bool (*has)(const void *ctx, const struct model_block *b);
	const void *ctx;
	/* The other blocks are not followed, which takes less memory and time.  history_chain() then
	 * describes only the chain's members that pass, and of history_counts() only events is valid. */
	bool drops;
};
/* Sets the filter; @f is copied, its ctx must outlive @h. */
void history_select(struct history *h, const struct history_filter *f);
/* The chain before @b, a block that was just reported or is live. */
struct history_chain history_chain(const struct history *h, const struct model_block *b);

/* Called now and then with the part of the reading that is done, from 0 to 1; NULL: not called. */
struct history_progress {
	void (*tell)(void *ctx, double done);
	void *ctx;
};
/* Sets the progress callback; @p is copied. */
void history_tell(struct history *h, const struct history_progress *p);

/* Where a pass ends early; 0: no limit. */
struct history_until {
	uint64_t events;  /* after this many events */
	uint64_t time_ns; /* before the first event that is later */
};

/**
 * history_read() - apply all items of @r, up to @until (NULL: all)
 *
 * Return: 0, or a negative errno with @err filled.
 */
int history_read(struct history *h, struct mpf_reader *r, const struct history_until *until,
		 struct mp_err *err);

/* Calls @each for every live block, also for those in the middle of a realloc, in any order.
 * Return: 0 or the first nonzero value of @each. */
int history_live(const struct history *h, int (*each)(void *ctx, const struct model_block *b),
		 void *ctx);

#endif
