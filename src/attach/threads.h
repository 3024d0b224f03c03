/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the code that stops threads (threads.c) and the code that releases them (release.c). */
#ifndef ATTACH_THREADS_H
#define ATTACH_THREADS_H

#include "attach/target.h"

/*
 * Handles one wait status of a thread.  Only a stop by PTRACE_INTERRUPT counts as stopped: it
 * happens in the kernel's signal path, from which system calls restart without a trace.  A signal
 * that stops the thread earlier is delivered at once, with its siginfo, and the interrupt then
 * stops the thread again.
 */
void thread_digest(struct target *t, struct thread *th, int status);

/* Handles the wait status of @th, if it has one.  Return: whether it had one. */
bool thread_collect(struct target *t, struct thread *th);

/*
 * Handles all pending wait statuses of threads, including stopped ones and those of
 * target_release_late().  A thread that was killed, or that must end because another one calls
 * execve(), stops once more on its way out; execve() does not return before that thread has been
 * continued and reaped.
 * Return: whether any was pending.
 */
bool threads_catch_up(struct target *t);

/* Marks a thread that does not stop, or is being killed: it is only released as soon as possible
 * (target_release_late()). */
void thread_late(struct target *t, struct thread *th);

/* Is the thread a parent in vfork()?  It waits in the kernel for its child and cannot stop.  It
 * runs no user code until then, so it counts as stopped, with its PC in libc's vfork. */
bool thread_waits_in_vfork(const struct target *t, const struct thread *th);

#endif
