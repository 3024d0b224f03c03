/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fault points: places where the recorder is killed to see what becomes of the target.  Only in a
 * build with -DMEMPROF_FAULTS (make O=build/faults); elsewhere nothing is left of them.
 *
 * MEMPROF_FAULT=NAME or NAME:N in the environment: SIGKILL at the Nth passing of that point; with
 * MEMPROF_FAULT_OF=PID that process is killed instead (the target), and MEMPROF_FAULT_SIGNAL=N
 * sends signal N (SIGSTOP: what is the target like just now?).
 *
 * MEMPROF_FAIL=NAME or NAME:N: the call at the place of that name fails at its Nth passing, once.
 * With MEMPROF_FAIL_AFTER=PATH passings count only once that file exists.  All system calls and
 * allocations of most folders are such places (lib/fault_calls.h); MEMPROF_FAIL_LIST=PATH
 * appends the name of each to that file when it is passed first.
 */
#ifndef LIB_FAULT_H
#define LIB_FAULT_H

#include <stdbool.h>

#ifdef MEMPROF_FAULTS
#include <stdatomic.h>

/* Sends that signal if the environment names @name and it was passed often enough. */
void fault_point(const char *name);
/* Return: whether the call at the place @name is to fail this time. */
bool fault_fail(const char *name);
/* The same of a call that has its count, @passed, for itself. */
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
