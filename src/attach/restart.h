/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Restart system calls that returned EINTR only because of memprof's ptrace stop, as far as the
 * kernel does not restart them itself. */
#ifndef ATTACH_RESTART_H
#define ATTACH_RESTART_H

#include "attach/target.h"

/* If a system call of the stopped @th returned EINTR only because of the ptrace stop, makes the
 * thread execute it again, and clears the error that the call left in a socket.  Where the kernel
 * decides about the restart later (arch.syscall.before is NULL), call this as soon as the thread
 * has stopped; elsewhere before it executes injected calls, and before it is resumed. */
void thread_restart(struct target *t, struct thread *th);

/*
 * After a ptrace stop the kernel continues a wait with a timeout by restart_syscall.  If the
 * thread's seccomp filter forbids restart_syscall, which would kill the thread, this makes the wait
 * begin again with its full time.  Call it last before the stopped @th is resumed or released; the
 * registers in @th are no longer valid afterwards.
 */
void thread_spare_wait(struct target *t, struct thread *th);

/* For architectures where the kernel prepares restarts before a tracer can see it
 * (arch.syscall.before).  The registers of @th must have been read.  Return: the number of the
 * system call that the stopped @th is about to execute, or -1. */
long thread_stands_before(struct target *t, struct thread *th);

#endif
