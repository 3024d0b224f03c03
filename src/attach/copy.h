/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A copy of a stopped target: a process with the target's memory at that moment, made by a clone()
 * that is injected into one of the target's threads.  The copy is traced and stopped from its birth
 * and never executes an instruction of the program, because it would be a second instance of the
 * service.  Order of calls:
 *
 *	target_stop(), copy_make(), target_release()	the target runs again
 *	/proc/COPY/mem is read
 *	copy_kill()
 *	unless it is an orphan: target_seize(), target_stop(), copy_reap(), target_release()
 *
 * The target normally sees nothing of this.  While the target is stopped, the copy makes a second
 * process with the same memory.  The copy is then killed, and the target is made to wait for it.
 * The second process is the copy from then on; its parent is the target's reaper (subreaper or
 * init), and only the reaper is notified of its end.
 *
 * This is not done if the target receives orphans itself (first process of a pid namespace, or
 * PR_SET_CHILD_SUBREAPER), if the reaper does not wait for them (attach/reaper.h), or if a filter
 * or a limit on processes forbids it.  The copy is then a child of the target with exit signal 0:
 * it sends no SIGCHLD, but a wait() with __WALL or __WCLONE sees it.
 *
 * The copy shares the target's descriptor table (CLONE_FILES), so that a file which the target
 * closes is really closed.  If memprof dies, the kernel kills the copy (PTRACE_O_EXITKILL, set on
 * the copy only); its remains are found and reaped later (snapshot/guardian.h).
 */
#ifndef ATTACH_COPY_H
#define ATTACH_COPY_H

#include "attach/target.h"
#include "lib/check.h"

struct copy {
	pid_t pid;    /* 0: there is no copy */
	pid_t ns_pid; /* in the target's pid namespace */
	bool orphan;  /* not the target's child */
	bool dead;    /* killed, but not reaped yet */
};

/* Seizes and stops @t so that a copy of it can be made or reaped.  @gentle: only one thread.
 * Return: 0 or a negative errno with @err. */
__must_check int copy_stop(struct target *t, bool gentle, const struct deadline *deadline,
			   struct mp_err *err);

/**
 * copy_make() - copy the stopped target @t
 * @orphan: another process reaps the orphans of @t (reaper_waits()); on return @c->orphan reports
 *	whether the copy is one
 * Checks the target's seccomp filters first.  Fails, with the target unchanged, if a filter forbids
 * clone() or wait4(), or if the kernel refuses (memory, number of processes).
 * Return: 0 with @c filled, or a negative errno with @err.  On failure no copy is alive, but the
 * target can have the zombie of one that it could not be made to wait for (attach/remains.h).
 */
__must_check int copy_make(struct copy *c, struct target *t, bool orphan, struct mp_err *err);
/* Kills the copy; its memory is freed on return.  A copy that is not an orphan remains as the
 * target's zombie until copy_reap(). */
void copy_kill(struct copy *c);
/* Makes the stopped target wait for its dead copy, if there is one, and for copies that were left
 * by a killed memprof (attach/remains.h).  Return: 0 or a negative errno with @err. */
__must_check int copy_reap(struct copy *c, struct target *t, struct mp_err *err);

#endif
