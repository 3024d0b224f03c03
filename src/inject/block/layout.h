/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_BLOCK_LAYOUT_H
#define INJECT_BLOCK_LAYOUT_H

#include "attach/target.h"
#include "formats/session.h"
#include "lib/check.h"

struct layout {
	struct ss_control control; /* offsets and sizes, all other fields zero */
	uint64_t length;	   /* of the block, in bytes */
	bool prefault;		   /* touch all pages from memprof before the target does */
};

/* Layout of a session regardless of limits.  @threads: current number; @ring: as below. */
void layout_default(size_t threads, uint64_t ring, struct layout *out);

/**
 * layout_choose() - choose how large a session the process's limits permit
 * @ring: requested bytes per thread, 0: the best size
 *
 * Reads RLIMIT_AS and the memory cgroups; touches nothing.
 * Return: 0, or a negative errno with @err: which limit leaves too little (MP_EXIT_NO_ROOM).
 */
__must_check int layout_choose(const struct target *t, uint64_t ring, struct layout *out,
			       struct mp_err *err);

/* Sets what the agent does when a ring fills up: with @lossless it waits; with @thins it thins out a
 * growing part of the allocations, unless the session samples; else events are lost. */
void layout_rings(struct ss_control *c, bool lossless, bool thins);
/* Sets what the agent needs for a budget (record/budget/budget.h) of @ppm millionths.  To be called before
 * layout_rings(). */
void layout_budget(struct ss_control *c, uint32_t ppm);

/* Are all offsets those that this memprof computes from the sizes?  For a layout that the target
 * could have written; @length is the real length of the block. */
bool layout_is_sound(const struct ss_control *c, uint64_t length);

#endif
