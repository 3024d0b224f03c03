/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reader thread: drains all rings into batches and extends the agent's deadline.  While the
 * queue is full it leaves the records in the rings if the agent then waits (lossless) or thins.
 *
 * One bound in time is enough to keep the history of every address in order.  A record is committed
 * before anything that depends on it can happen: the record of a free before the block is freed,
 * the record of an allocation before the block is returned.  So all records up to the time that was
 * read before the ring heads are in this round.  The aggregator sorts them and stops at this time;
 * later records wait for the next round.
 */
#ifndef RECORD_READER_H
#define RECORD_READER_H

#include <stdbool.h>
#include <stdint.h>
#include "record/block_layout.h"
#include "record/budget/overhead.h"
#include "record/shared.h"
#include "record/stall.h"

/* Rdtsc can run ahead of earlier instructions by microseconds */
#define READER_REORDER_TICKS 10000

/* The reader's own state.  No other thread uses it while the reader runs. */
struct reader {
	const struct recorder_config *config;
	const struct block_layout *layout;
	struct recorder_shared *shared;
	uint64_t queue_ceiling;
	bool *is_active;      /* [slot]: it is in shared->active */
	uint64_t *frees_seen; /* [slot]: its written[MPR_LOST_FREE] at the last look */
	uint64_t claimed_seen, handed_over_ns;
	/* The newest complete flush, and the one that is complete when a round is complete up to
	 * flush_at (ticks), or the same. */
	uint64_t barrier_sent, barrier_next, flush_at;
	bool settling; /* a batch since the last empty one had records */
	long sleep_ms;
	bool after_loss; /* the last batch was dropped */
	bool gave_up;	 /* the disk stalled, so the target does not wait although lossless */
	struct stall stall;
	struct overhead overhead; /* with layout->overhead_ppm */
};

/* Fills the zeroed @r.  Return: 0 or -ENOMEM; reader_free() in both cases. */
int reader_init(struct reader *r, const struct recorder_config *config,
		const struct block_layout *layout, struct recorder_shared *shared);
void reader_free(struct reader *r);
/* The thread: runs until shared->stop is set.  @reader: struct reader */
void *reader_run(void *reader);
/* Sets the agent's deadline a few seconds ahead.  Called once before the hooks are inserted, then
 * by the reader. */
void reader_heartbeat(struct reader *r);
/* Updates shared->active with newly claimed slots.  The agent increments slots_claimed before the
 * first record of a slot; @all: search even if the counter has not changed. */
void reader_find_active(struct reader *r, bool all);
/* Wakes the reader of @block if it sleeps.  Can be called by any thread. */
void reader_wake(struct ss_control *block);

#endif
