/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The aggregator thread: takes sorted batches, decodes their records, maintains the live table and
 * writes the recording.
 *
 * Its parts, each of which uses only those named before it: stacks/stack_ids.h, blocks.h,
 * pieces/periodic.h and events.h for the records; pieces/carry_in.h and pieces/piece.h for the
 * beginnings of files.
 */
#ifndef RECORD_AGGREGATOR_H
#define RECORD_AGGREGATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/live.h"
#include "record/block_layout.h"
#include "record/stacks/code_ranges.h"
#include "record/culling/cull.h"
#include "record/levels.h"
#include "record/origins.h"
#include "record/pieces/piece.h"
#include "record/recorder.h"
#include "record/shared.h"
#include "record/order/sorter.h"
#include "record/stacks/stacks.h"
#include "record/tallies.h"

/* The state of the thread that owns a ring. */
struct slot_state {
	uint32_t tid, raw_sequence, raw_stack;
	uint32_t named_tid; /* the thread whose name was read last, at named_ns */
	uint64_t named_ns;
	/* The thread whose name was written last, and into which piece */
	uint32_t written_tid, written_piece;
	char written_name[17];
	bool left_out;
	bool in_realloc, realloc_known, realloc_temporary;
	struct live_block realloc_block;
	struct origin realloc_origin;
	struct cull_realloc realloc_held;
	/* By number (ORDER_NUMBER): stack of a live block that is not in the live table, plus 1;
	 * NULL: none so far */
	uint32_t *short_stack;
};

#define RECENT_STACKS 512u
#define STACKS_LOAD   60 /* percent, of stack_of_word */
#define LIVE_IS_HELD  CULL_NUMBERS

/* The aggregator's own state.  No other thread uses it while the aggregator runs. */
struct aggregator {
	const struct recorder_config *config;
	const struct block_layout *layout;
	struct recorder_shared *shared;

	struct sorter sorter;
	/* The records of a batch.  The current one: its index in order->events, its slot, its time;
	 * waiting: the depth of events that are suspended while later records are processed first
	 * (overtaken.c). */
	struct order *order;
	size_t at;
	uint32_t at_slot, waiting;
	uint64_t last_ns;
	uint64_t tick_rate; /* ticks per microsecond, rounded up */
	struct clock clock; /* for the times of the batch */
	/* event_process(), for overtaken.c, which it uses itself */
	void (*process)(struct aggregator *a, const struct pending *p, uint64_t ns);

	struct slot_state *slot;
	/* live_block.stack is the block's number in cull if LIVE_IS_HELD is set; else an index into
	 * origins; or if that is NULL, a stack id */
	struct live *live;
	struct origins *origins;
	struct stacks stacks;
	struct code_ranges code;
	struct live *stack_of_word; /* the agent's stack id, shifted -> the recording's id */
	struct {
		uint32_t word, id;
	} recent_stack[RECENT_STACKS]; /* [hash of the word]: entries of stack_of_word */
	struct recorder_progress now;  /* working copy of shared->shown */
	struct levels levels;	       /* what is live; the peak of the current piece */
	struct tallies tallies;
	struct mp_losses losses;
	uint64_t represented, represented_bytes; /* by others that were recorded, without these */

	struct mpf_writer *file;
	struct cull *cull;	/* NULL: every event is written at once */
	uint64_t next_slice_ns; /* when the sums of culled blocks are written next */
	struct piece piece;
	uint32_t hooks_written;

	uint64_t last_flush_ns;
	/* End of the recording, 0: not known yet; processing can continue after it */
	uint64_t end_ns;
	uint64_t losses_seen, losses_looked_ns; /* time of the last losses_note() */
	uint64_t next_code_ns;			/* earliest time of the next code_changed() call */
	uint64_t next_usage_ns;			/* when the mappings are read next */
	uint64_t next_names_ns;			/* when the names of all threads are read next */
	struct mp_sample sample;		/* the last one that was written */
	struct mp_sample session; /* memprof's share of the target's memory as last measured ... */
	uint64_t next_session_ns; /* ... and when to measure it next */
};

/* Fills the zeroed @a, without a file.  Return: 0 or -ENOMEM; aggregator_free() in both cases. */
int aggregator_init(struct aggregator *a, const struct recorder_config *config,
		    const struct block_layout *layout, struct recorder_shared *shared);
/* Frees all but the file. */
void aggregator_free(struct aggregator *a);
/* The thread: runs until the queue has ended and is empty.  @aggregator: struct aggregator */
void *aggregator_run(void *aggregator);

/* Return: whether some allocations are or were left out. */
static inline bool aggregator_selects(const struct aggregator *a)
{
	return __atomic_load_n(&a->shared->selects, __ATOMIC_RELAXED);
}

/* Notes for stall_look() that the aggregator makes progress. */
static inline void aggregator_moves(struct aggregator *a)
{
	uint64_t *moved = &a->shared->moved;

	__atomic_store_n(moved, *moved + 1, __ATOMIC_RELAXED);
}

#endif
