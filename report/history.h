/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The history of every block: events in, allocations and frees of known blocks out.  The one place
 * that knows how reallocs pair up, which frees are foreign and what is temporary, so that every
 * view and every format counts the same.  Definitions: report/model.h.
 */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/err.h"

struct model_block {
	uint64_t addr, size, usable, time_ns;
	uint64_t ordinal; /* of the allocation, or page fault, in the recording, from 0 */
	uint32_t stack, tid;
	uint32_t chain; /* for history_chain(); 0: not reallocated so far */
	uint16_t hook;
	uint16_t process; /* its number, of a recording of several */
	uint8_t flags;
};

/* Blocks that one realloc after the other made of each other; told about its last member so far.
 */
struct history_chain {
	uint64_t ordinal, time_ns, size; /* of the first member */
	uint64_t length;		 /* members so far */
};

/* How a block left the live set. */
enum block_end {
	BLOCK_FREED,
	BLOCK_TEMPORARY, /* freed, by its thread before that allocated again */
	BLOCK_LOST, /* its address was given out again: the free was lost, or is still to come and
		       then not told again */
};

/* Told in the order of the recording; each returns 0, or a negative errno that ends the pass.
 * NULL members are passed over. */
struct history_sink {
	int (*item)(void *ctx, const struct mpf_item *item); /* every item, before it is applied */
	int (*allocated)(void *ctx, const struct model_block *b);
	/* Some events ahead: a block with this stack is about to be told of, or is not. */
	void (*ahead)(void *ctx, uint32_t stack);
	int (*faulted)(void *ctx, const struct model_block *page);
	int (*ended)(void *ctx, const struct model_block *b, const struct mp_event *by,
		     enum block_end how);
	void *ctx;
};

/* Does the block live on at another address or size? */
static inline bool history_continues(const struct mp_event *by, enum block_end how)
{
	return how != BLOCK_LOST && by->kind == EV_REALLOC_END && by->addr;
}

struct history_counts {
	uint64_t events, foreign_frees, housekeeping_frees, foreign_reallocs, mismatches,
	    failed_reallocs;
};

struct history;
struct selection; /* report/selection.h */

/* Return: a history without events that tells @sink (copied), or NULL when out of memory. */
struct history *history_new(const struct history_sink *sink);
void history_free(struct history *h);
const struct history_counts *history_counts(const struct history *h);
/* From now on the sink is told of the blocks in @sel only (NULL: all); @sel outlives @h. */
void history_select(struct history *h, const struct selection *sel);
/* What came before @b, a block that was just told of or is live. */
struct history_chain history_chain(const struct history *h, const struct model_block *b);

/* Told now and then how much of the reading is done, from 0 to 1; NULL: nobody. */
struct history_progress {
	void (*tell)(void *ctx, double done);
	void *ctx;
};
/* @p is copied. */
void history_tell(struct history *h, const struct history_progress *p);

/* Where a pass may end early; 0: at the end of the file. */
struct history_until {
	uint64_t events;  /* after so many */
	uint64_t time_ns; /* before the first event that is later */
};

/**
 * history_read() - all items of @r, up to @until (NULL: all)
 *
 * Return: 0, or a negative errno with @err filled.
 */
int history_read(struct history *h, struct mpf_reader *r, const struct history_until *until,
		 struct mp_err *err);

/* Calls @each for every live block, also those in the middle of a realloc; in no order.
 * Return: 0 or the first value of @each that is not. */
int history_live(const struct history *h, int (*each)(void *ctx, const struct model_block *b),
		 void *ctx);

#endif
