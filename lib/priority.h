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
 * priority_raise() - run before all threads of normal policies
 *
 * Threads of the target compete for the processors that memprof needs to stop and to release them:
 * on a busy machine a stop would last as long as memprof waits to be scheduled.  SCHED_FIFO with
 * the lowest priority, which children do not inherit.  Needs CAP_SYS_NICE; without it nothing
 * changes.
 * @old: set to what the thread has now, for priority_restore()
 */
void priority_raise(struct priority *old);
void priority_restore(const struct priority *old);

#endif
