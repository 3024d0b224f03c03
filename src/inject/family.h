/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes that were forked from a recorded one.  They have its patched text and its session
 * block, but a wiped gate: their hooks only pass calls through.
 */
#ifndef INJECT_FAMILY_H
#define INJECT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "inject/find.h"
#include "lib/check.h"
#include "lib/err.h"

/**
 * family_leave() - remove what is left of a session without a recorder
 * @t: after target_look()
 * That is a forked child's copy of its parent's session, or a session whose detach had to leave
 * pages in the target (SS_DORMANT).  An active session is not touched.
 * Return: 0, or as session_close() with @err.
 */
__must_check int family_leave(struct target *t, struct mp_err *err);

/**
 * family_restore() - restore all forked children that have one of these sessions
 * @id: @n of them
 * @except: a process that is skipped (the recorded one, if it still has the session); 0: none
 * @left: set to the number of processes that still have a session
 * Repeats until a pass over /proc finds no more, because children fork too; at most 20 times.
 * Return: number of processes restored.
 */
uint32_t family_restore(const struct session_id *id, size_t n, pid_t except, uint32_t *left);

/* Detects that the process @pid, which has a session, has been forked. */
struct family_watch {
	pid_t pid;
	VEC(pid_t) seen; /* processes that did not have the session */
};

/* Does another process have the session?  Processes that did not have it at an earlier call are not
 * checked again.  Return: true also if that cannot be determined.  family_forget() frees the memory
 * of @w. */
bool family_grew(struct family_watch *w);
void family_forget(struct family_watch *w);

#endif
