/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PTRACE_SEIZE that does not block forever. */
#ifndef ATTACH_SEIZE_H
#define ATTACH_SEIZE_H

#include <sys/types.h>
#include "lib/check.h"

/**
 * seize_thread() - PTRACE_SEIZE of thread @tid of process @pid, with ptrace options @options
 *
 * While a thread of the process is in execve(), the kernel makes PTRACE_SEIZE wait for the end of
 * that call, and no signal interrupts the wait.  execve() itself waits until every other thread has
 * ended, and a traced thread ends only when its tracer resumes it.  So this function returns after
 * a short time, and the caller must handle its other threads before it tries again.  Uses a real-time
 * signal whose action is the default, sent to the calling thread.
 *
 * Return: 0; -EINTR after waiting for 2 ms, with the thread not seized; -ENOMEM if
 * there is no timer; -EAGAIN if no such signal is left; or the -errno of ptrace().
 */
__must_check int seize_thread(pid_t pid, pid_t tid, long options);

#endif
