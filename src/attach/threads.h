/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads of a target, shared by the code that seizes them, stops them, handles their wait
 * statuses and releases them. */
#ifndef ATTACH_THREADS_H
#define ATTACH_THREADS_H

#include "attach/target.h"

/* thread_list.c.  Return: the thread @tid of @t that has not ended, or NULL. */
struct thread *thread_find(struct target *t, pid_t tid);
/* Return: a new entry, which @t owns, or NULL when out of memory. */
struct thread *thread_add(struct target *t, pid_t tid);
void threads_drop_gone(struct target *t);
void threads_forget(struct target *t);

/* seize_threads.c: seizes the threads in /proc/PID/task that are not seized yet.  Return: 0 if
 * there was nothing new, 1 if there was, or -errno with @err. */
int threads_seize_new(struct target *t, const struct deadline *deadline, struct mp_err *err);
/* @fresh: result of threads_seize_new().  Return: whether there can be more to seize. */
bool threads_seize_more(const struct target *t, int fresh, const struct deadline *deadline);

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

/* Handles the wait statuses of running threads.  Return: whether there were any. */
bool threads_collect(struct target *t);
/* Moves a late thread back to @t->threads when it has a wait status to handle.  Return: whether any
 * had one. */
bool threads_collect_late(struct target *t);

/* Marks a thread that does not stop, or is being killed: it is only released as soon as possible
 * (target_release_late()). */
void thread_late(struct target *t, struct thread *th);

/* Is the thread a parent in vfork()?  It waits in the kernel for its child and cannot stop.  It
 * runs no user code until then, so it counts as stopped, with its PC in libc's vfork. */
bool thread_waits_in_vfork(const struct target *t, const struct thread *th);

#endif
