/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs what stops a process in a thread of its own: it handles no signals of the caller's, which could interrupt
 * system calls, and has a stack of the usual size. */
#ifndef API_APART_H
#define API_APART_H

#include <sys/types.h>
#include "lib/err.h"

struct target;

/**
 * apart_run() - look at a process and examine it
 * @run: called with the process, which it must not keep, and @arg
 * Return: what @run returned, or a negative errno; with @err.
 */
int apart_run(pid_t pid, int (*run)(struct target *t, void *arg, struct mp_err *err), void *arg,
	      struct mp_err *err);

#endif
