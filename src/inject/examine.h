/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What session_open() and session_install() would find out about a process before they stop it. */
#ifndef INJECT_EXAMINE_H
#define INJECT_EXAMINE_H

#include "attach/target.h"
#include "inject/hooks/find.h"
#include "lib/check.h"
#include "lib/err.h"

/* In the order in which a recording makes the checks. */
enum examined {
	EXAMINED_ALLOCATOR, /* a known one is mapped, and the program's own code runs */
	EXAMINED_SANDBOX,   /* seccomp, as far as /proc shows it */
	EXAMINED_SHARED,    /* no other process shares the memory */
	EXAMINED_ROOM,	    /* RLIMIT_AS, memory cgroups */
	EXAMINED_HOOKS,	    /* the functions can be patched */
	EXAMINED_ALL,
};

struct examination {
	struct mp_err refused[EXAMINED_ALL]; /* .exit: 0 unless attach would fail for this reason */
	struct hook_plan plan;		     /* the functions that would be hooked */
};

/**
 * session_examine() - plan a session without making one
 * @t: after target_look(); keeps running, is not traced and not changed
 * @e: filled, to be freed by examination_free(); with EXAMINED_ALLOCATOR refused, EXAMINED_HOOKS is
 *	not checked
 *
 * What only shows in a stopped process is not checked: the rules of seccomp filters, and threads
 * that do not stop.  The process must have no session.
 * Return: 0, or a negative errno with @err if the process cannot be examined.
 */
__must_check int session_examine(struct target *t, struct examination *e, struct mp_err *err);
void examination_free(struct examination *e);

#endif
