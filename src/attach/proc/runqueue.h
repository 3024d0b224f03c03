/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Time spent waiting for a processor.  A thread must be scheduled before it can stop or execute an
 * injected system call; on a busy machine this is most of a pause.
 */
#ifndef ATTACH_PROC_RUNQUEUE_H
#define ATTACH_PROC_RUNQUEUE_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/vec.h"

/* How busy the machine is. */
struct runqueue_load {
	uint32_t running;    /* runnable threads, without the caller */
	uint32_t processors; /* online */
	uint64_t wait_ns;    /* longest delay of the caller's wake-up in a few short sleeps */
};

/* Measures for 10 ms on an idle machine, at most for about 200 ms.  Values that cannot be read are
 * 0. */
struct runqueue_load runqueue_look(void);

/* Time that threads of a process have waited for a processor so far (sched_info.run_delay). */
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

/* Return: the longest wait of one of these threads since runqueue_begin(), in nanoseconds; 0 if
 * unknown.  Frees @d. */
uint64_t runqueue_longest(struct runqueue_delays *d);

#endif
