/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which allocations a recording takes: all, or those of some threads, and none while it is paused.
 * A block that was left out stays left out: its free is not written either.  A block that was
 * taken is followed to its end, whoever frees it and whenever.
 */
#ifndef RECORD_SELECT_H
#define RECORD_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#define SELECT_THREADS 16

struct selection {
	const char *thread[SELECT_THREADS]; /* patterns of thread names, fnmatch(3); none: all */
	uint32_t nthreads;
	bool paused; /* at the start */
};

struct recorder;
struct slot_state;
/* Is what this ring's thread allocates now left out?  The aggregator's. */
bool select_leaves_out(struct recorder *r, struct slot_state *st);

#endif
