/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls that our stop interrupted, as far as the kernel does not restart them by itself. */
#ifndef ATTACH_RESTART_H
#define ATTACH_RESTART_H

#include "attach/target.h"

/* Makes a system call of the stopped @th that returned EINTR only because of our ptrace stop be
 * made again; nothing of it stays in a socket.  To be called when the thread has stopped, where the
 * kernel decides about the restart afterwards (no before_syscall in struct arch); else before it
 * executes injected calls, and before it is resumed. */
void thread_restart(struct target *t, struct thread *th);

/*
 * The kernel continues a wait with a timeout that our stop interrupted by restart_syscall.  Where
 * the thread's seccomp filter forbids that, which would kill it, the wait begins again, with all of
 * its time.  To be called last before the stopped @th is resumed or released; its registers are
 * not known any more.
 */
void thread_spare_wait(struct target *t, struct thread *th);

/* Where the kernel prepares restarts before a tracer can see it (struct arch, before_syscall): the
 * number of the system call that the stopped @th stands before, or -1.  Its registers are read. */
long thread_stands_before(struct target *t, struct thread *th);

#endif
