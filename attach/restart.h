/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls that our stop interrupted, as far as the kernel does not restart them by itself. */
#ifndef ATTACH_RESTART_H
#define ATTACH_RESTART_H

#include "attach/target.h"

/* Our stop is nobody's signal: a call of the stopped @th that failed by it is going to be made
 * again, and nothing of it stays in a socket.  Before the thread executes injected calls, and
 * before it goes on. */
void thread_restart(struct target *t, struct thread *th);

/*
 * A wait with a timeout that our stop interrupted goes on by restart_syscall.  Where the thread's
 * seccomp filter forbids that, which would kill it, the wait begins again, with all of its time.
 * @th is stopped and goes on, or is let go, after this; its registers say nothing.
 */
void thread_spare_wait(struct target *t, struct thread *th);

/* Where the kernel prepares restarts before a tracer can see it (struct arch, before_syscall): the
 * number of the system call that the stopped @th stands before, or -1.  Its registers are read. */
long thread_stands_before(struct target *t, struct thread *th);

#endif
