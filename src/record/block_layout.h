/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the rings and the stacks are in memprof's mapping of the session block.  Copied once from a
 * trusted copy of the block's header, because the target can write to the block.  Constant while
 * the recorder's threads run.
 */
#ifndef RECORD_BLOCK_LAYOUT_H
#define RECORD_BLOCK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"

struct block_layout {
	char *slots; /* the first slot */
	uint32_t nslots;
	uint64_t slot_stride, slot_ring, ring_size; /* bytes; slot_ring: offset in a slot */
	const uint64_t *arena;			    /* the stacks that the agent interned */
	uint64_t arena_words;
	bool lossless;
	bool thins;	    /* the agent thins when a ring fills up or the recorder is behind ... */
	uint64_t ring_thin; /* ... a ring from so many bytes on */
	/* The budget, in millionths of the target's CPU time (record/budget/budget.h); 0: none.  The level
	 * of sampling then takes the place of thinning. */
	uint32_t overhead_ppm;
	uint64_t nsampled; /* the most blocks that the agent can know */
};

/* Return: the shared part of slot @i.  The target can change its fields at any time. */
static inline struct ss_thread *slot_at(const struct block_layout *l, uint32_t i)
{
	return (struct ss_thread *)(l->slots + i * l->slot_stride);
}

#endif
