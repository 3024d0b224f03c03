/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is left of copies (attach/copy.h) whose memprof was killed: the kernel kills them, but their
 * zombies stay until the target waits for them.  A process that is none is told by all of:
 *
 *	no signal at its end (field 38 of /proc/PID/stat is 0): not a child of fork()
 *	all signals blocked, as only the copy of a borrowed thread has them
 *	ended by SIGKILL without one page fault, or by SIGSEGV with that signal unblocked by the
 *	kernel (its first instruction, attach/copy.c)
 */
#ifndef ATTACH_REMAINS_H
#define ATTACH_REMAINS_H

#include "attach/procfs.h"
#include "lib/check.h"

struct remains {
	struct tids dead; /* zombies, as the target sees their numbers */
	bool dying;	  /* there is one that is no zombie yet */
};

/* Looks among the children of @pid.  Return: 0 with @r to be freed, or a negative errno. */
__must_check int remains_find(pid_t pid, struct remains *r);
void remains_free(struct remains *r);

#endif
