/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Selects the allocations that are recorded: all or those of some threads, and none while paused.
 * The free of a block that was left out is not written either.  A recorded block is followed until
 * it is freed, by any thread, paused or not.
 */
#ifndef RECORD_SELECT_H
#define RECORD_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#define SELECT_THREADS 16

struct select_config {
	/* fnmatch(3) patterns of thread names; none: all threads */
	const char *thread[SELECT_THREADS];
	uint32_t nthreads;
	bool paused; /* start paused */
};

struct aggregator;
struct slot_state;
/* Return: whether the current event's allocation by the thread of @st is left out.  Called by the
 * aggregator. */
bool select_leaves_out(struct aggregator *a, struct slot_state *st);

#endif
