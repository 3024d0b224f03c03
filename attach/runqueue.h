/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Waiting for a processor.  A thread that is to stop, or to execute an injected system call, has to
 * be scheduled first; on a busy machine most of a pause is that.
 */
#ifndef ATTACH_RUNQUEUE_H
#define ATTACH_RUNQUEUE_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/vec.h"

/* How busy the machine is. */
struct runqueue_load {
	uint32_t running;    /* threads that run or want to, without the caller */
	uint32_t processors; /* online */
	uint64_t wait_ns;    /* longest wait of the caller in a few short sleeps */
};

/* Measures for 10 ms on an idle machine, about 200 ms at most.  What cannot be read is 0. */
struct runqueue_load runqueue_look(void);

/* How long threads of a process had waited for a processor at one moment (sched_info.run_delay). */
struct runqueue_delay {
	pid_t pid, tid;
	uint64_t ns;
};
struct runqueue_delays {
	VEC(struct runqueue_delay) list;
};

/**
 * runqueue_begin() - note how long each thread of @pid, and the caller, have waited so far
 * @d: freed by runqueue_longest().  A thread whose /proc/PID/task/TID/schedstat cannot be read (a
 *	kernel without CONFIG_SCHED_INFO) is left out.
 */
void runqueue_begin(struct runqueue_delays *d, pid_t pid);

/* The longest that one of these threads has waited since runqueue_begin(), in nanoseconds; 0 if
 * nothing is known.  Frees @d. */
uint64_t runqueue_longest(struct runqueue_delays *d);

#endif
