/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A copy of a stopped target: a process with its memory at that moment, made by a clone() that one
 * of its threads is asked for.  The copy is traced and stopped from birth and never runs an
 * instruction of the program: it would be a second instance of the service.  Order of life:
 *
 *	target_stop(), copy_make(), target_release()	the target runs again
 *	/proc/COPY/mem is read
 *	copy_kill()
 *	unless it is an orphan: target_seize(), target_stop(), copy_reap(), target_release()
 *
 * What the target sees: nothing.  While it is stopped the copy makes another process of the same
 * memory and is killed and waited for by the target, so that the second one, which is then the
 * copy, is a child of the target's reaper (subreaper or init), which alone is told of its end.
 *
 * That is not done where the target gets its orphans itself (first process of a pid namespace, or
 * PR_SET_CHILD_SUBREAPER), where the reaper does not wait for them (attach/reaper.h), and where a
 *filter or a limit on processes forbids it.  The copy is then a child of the target with exit
 *signal 0: no SIGCHLD comes, but a wait() with __WALL or __WCLONE sees it.
 *
 * The table of descriptors is shared (CLONE_FILES), so that what the target closes is closed; if
 * memprof dies, the kernel kills the copy (PTRACE_O_EXITKILL, on the copy only), and what remains
 * of it is found and reaped (leaks/guardian.h).
 */
#ifndef ATTACH_COPY_H
#define ATTACH_COPY_H

#include "attach/target.h"
#include "lib/check.h"

struct copy {
	pid_t pid;    /* 0: there is none */
	pid_t ns_pid; /* as the target sees it */
	bool orphan;  /* not the target's child */
	bool dead;    /* killed, and not reaped yet */
};

/**
 * copy_make() - copy the stopped target @t
 * @orphan: another process reaps the orphans of @t (reaper_waits()); it is @c->orphan that tells
 *	whether the copy is one
 * Asks its seccomp filters first.  Refuses, with the target untouched, when a filter forbids
 * clone() or wait4(), or when the kernel does (memory, number of processes).
 * Return: 0 with @c filled, or a negative errno with @err; no copy lives then, but the target may
 * hold the zombie of one that it could not be asked to wait for (attach/remains.h).
 */
__must_check int copy_make(struct copy *c, struct target *t, bool orphan, struct mp_err *err);
/* Ends the copy; its memory is gone on return.  The target holds the zombie of one that is no
 * orphan until copy_reap(). */
void copy_kill(struct copy *c);
/* Has the stopped target wait for its dead copy (there need not be one), and for those that a
 * killed memprof has left (attach/remains.h).  Return: 0 or a negative errno with @err. */
__must_check int copy_reap(struct copy *c, struct target *t, struct mp_err *err);

#endif
