/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Time for architectures without a counter that programs can read: CLOCK_MONOTONIC by the vDSO if
 * the recorder found its function (inject/vdso.h), else by a system call.
 */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

#include "agent/agent.h"

#define CLOCK_MONOTONIC 1

struct ag_timespec {
	long seconds, nanoseconds;
};

/* agent-entry.S: calls @function under the target's calling convention. */
long ag_call_clock(uint64_t function, long clock, struct ag_timespec *now);

/* Return: nanoseconds; 0 if the clock cannot be read. */
static inline uint64_t ag_clock_read(const struct ss_control *c)
{
	struct ag_timespec now = {0, 0};

	if (!c->clock_addr || ag_call_clock(c->clock_addr, CLOCK_MONOTONIC, &now))
		ag_raw_syscall(AG_NR_CLOCK_GETTIME, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
}

#endif
