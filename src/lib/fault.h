/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fault points, to test what happens to the target if memprof is killed at a certain place.  They
 * exist only in a build with -DMEMPROF_FAULTS (make O=build/faults); other builds contain no code
 * for them.
 *
 * MEMPROF_FAULT=NAME or NAME:N in the environment: SIGKILL when that point is passed for the Nth
 * time.  With MEMPROF_FAULT_OF=PID that process (the target) is killed instead.
 * MEMPROF_FAULT_SIGNAL=N sends signal N instead of SIGKILL (SIGSTOP: to inspect the target at this
 * point).
 *
 * MEMPROF_FAIL=NAME or NAME:N: the call at the place of that name fails once, when it is passed
 * for the Nth time.  With MEMPROF_FAIL_AFTER=PATH, passes count only after that file exists.  All
 * system calls and allocations of most folders are such places (lib/fault_calls.h).
 * MEMPROF_FAIL_LIST=PATH appends the name of each place to that file when it is first passed, and
 * no call fails.
 */
#ifndef LIB_FAULT_H
#define LIB_FAULT_H

#include <stdbool.h>

#ifdef MEMPROF_FAULTS
#include <stdatomic.h>

/* Sends the signal if the environment selects @name and this is the selected pass. */
void fault_point(const char *name);
/* Return: whether the call at the place @name must fail this time. */
bool fault_fail(const char *name);
/* As fault_fail(), for a place with a counter of its own, @passed. */
bool fault_call(const char *place, atomic_long *passed);
#else
static inline void fault_point(const char *name)
{
	(void)name;
}
static inline bool fault_fail(const char *name)
{
	(void)name;
	return false;
}
#endif

#endif
