/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scheduling of the calling thread while a target is stopped. */
#ifndef LIB_PRIORITY_H
#define LIB_PRIORITY_H

#include <sched.h>

struct priority {
	int policy;
	struct sched_param param;
};

/**
 * priority_raise() - schedule the calling thread before all threads of normal policies
 *
 * memprof competes with the target's threads for the processors that it needs to stop and release
 * them.  On a busy machine a stop would also last as long as memprof waits to be scheduled.  Uses
 * SCHED_FIFO with the lowest priority, which children do not inherit.  Needs CAP_SYS_NICE; without
 * it nothing changes.
 * @old: set to the previous values, for priority_restore()
 */
void priority_raise(struct priority *old);
/* Restores the scheduling that priority_raise() stored in @old. */
void priority_restore(const struct priority *old);

#endif
