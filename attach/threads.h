/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between what stops threads (threads.c) and what lets them go (release.c). */
#ifndef ATTACH_THREADS_H
#define ATTACH_THREADS_H

#include "attach/target.h"

/*
 * One wait status of a thread.  Only a stop of our interrupt counts as stopped: it lies in the
 * kernel's signal path, from where system calls restart as if nothing had been.  A signal that is
 * met on the way goes in at once, with its siginfo, and the interrupt catches the thread again.
 */
void thread_digest(struct target *t, struct thread *th, int status);

/* Digests what @th has met, if anything.  Return: whether there was. */
bool thread_collect(struct target *t, struct thread *th);

/*
 * Digests what threads have met meanwhile, stopped ones and those of target_release_late()
 * included: a thread that was killed, or that is to end because another one calls execve(), stops
 * once more on its way out, and execve() does not return before it has been let on and reaped.
 * Return: whether there was anything.
 */
bool threads_catch_up(struct target *t);

/* It does not stop, or is being killed: no more is done with it than to let it go as soon as it can
 * be (target_release_late()). */
void thread_late(struct target *t, struct thread *th);

/* A parent in vfork() waits in the kernel for its child and cannot stop; it runs no user code
 * until then, so it counts as stopped, its PC being in libc's vfork. */
bool thread_waits_in_vfork(const struct target *t, const struct thread *th);

#endif
