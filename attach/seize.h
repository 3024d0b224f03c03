/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PTRACE_SEIZE that does not block for ever. */
#ifndef ATTACH_SEIZE_H
#define ATTACH_SEIZE_H

#include <sys/types.h>
#include "lib/check.h"

/**
 * seize_thread() - PTRACE_SEIZE of thread @tid of process @pid, with ptrace options @options
 *
 * While a thread of the process is in execve(), the kernel makes PTRACE_SEIZE wait for the end of
 * that call, and no signal interrupts the wait.  execve() itself waits until every other thread has
 * ended, and a traced thread ends only when its tracer lets it: so the caller has to come back and
 * handle its other threads.  Uses SIGALRM and ITIMER_REAL; the caller is memprof's main thread.
 *
 * Return: 0; -EINTR after 2 ms of waiting, nothing was done then; or what ptrace() failed with.
 */
__must_check int seize_thread(pid_t pid, pid_t tid, long options);

#endif
