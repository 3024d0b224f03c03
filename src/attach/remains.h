/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is left of copies (attach/copy.h) whose memprof was killed: the kernel kills them, but their
 * zombies stay until the target waits for them.  A zombie is recognized as a copy if all of this is
 * true:
 *
 * - Its exit signal is 0 (field 38 of /proc/PID/stat): it is not a child made by fork().
 *
 * - All signals are blocked, as in a copy of the carrier.
 *
 * - It was killed by SIGKILL after at most a few page faults, or by SIGSEGV, which the kernel
 *   unblocked for that (at its first instruction, attach/copy.c).
 */
#ifndef ATTACH_REMAINS_H
#define ATTACH_REMAINS_H

#include "attach/proc/procfs.h"
#include "lib/check.h"

struct remains {
	struct tids dead; /* zombies, by their pids in the target's namespace */
	bool dying;	  /* there is a copy that is not a zombie yet */
};

/* Examines the children of @pid.  Return: 0 with @r to be freed, or a negative errno. */
__must_check int remains_find(pid_t pid, struct remains *r);
void remains_free(struct remains *r);

#endif
