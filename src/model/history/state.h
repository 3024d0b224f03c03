/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state of a history (model/history/history.h): apply.c makes tellings of events, tell.c passes
 * them on.  While a recording is read, they can be in different threads, so each member belongs to one of
 * them. */
#ifndef MODEL_HISTORY_STATE_H
#define MODEL_HISTORY_STATE_H

#include "lib/vec.h"
#include "model/history/batch.h"
#include "model/history/history.h"
#include "model/history/live_blocks.h"
#include "model/tids.h"

/* The state of a thread. */
struct per_thread {
	uint32_t tid;
	uint64_t
	    last_alloc; /* address of its latest block, as long as that can be temporary; or 0 */
	bool in_realloc, known;
	bool block_is_last; /* the block inside a realloc is its latest one */
	struct model_block block;
};

/* The state of a process. */
struct space {
	struct live_blocks live;
	VEC(struct per_thread) threads;
	struct tid_table tids;
};

struct history {
	struct history_sink sink;
	struct history_filter only;
	struct history_progress progress;

	/* model/history/apply.c */
	struct history_counts counts;
	struct space *space;
	uint32_t nspaces;
	uint64_t allocations;
	uint32_t chains_made;
	VEC(uint32_t) unused_chains;
	struct history_until until;
	int apply_ret;

	/* model/history/tell.c */
	VEC(struct history_chain) chains; /* [0] is not used */
	uint32_t batches;
	int tell_ret;
};

/* Makes tellings of the events of @b.  At the end of what is to be read, and with h->apply_ret set when
 * out of memory, sets b->last and removes what is not to be told. */
void history_apply(struct history *h, struct batch *b);
/* Passes @b on to the sink.  Return: 0, or what the sink returned. */
int history_tell_batch(struct history *h, const struct batch *b);

#endif
