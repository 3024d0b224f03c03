/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes that were forked from a recorded one.  They carry its patched text and its session
 * block, but a wiped gate: their hooks pass through.
 */
#ifndef INJECT_FAMILY_H
#define INJECT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "lib/check.h"
#include "lib/err.h"

/* Which session block: forked children map the same file. */
struct session_id {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
};

/* Return: whether @pid maps a session block (that we may see), with @id filled. */
bool session_id_of(pid_t pid, struct session_id *id);
bool session_id_equal(const struct session_id *a, const struct session_id *b);

/**
 * family_refuse_recorder() - is @pid the recorder of a session, which has the block in its memory?
 * @exit: for @err
 * Return: -EINVAL with @err, which names the recorded process where that can be seen; 0: it is not.
 */
__must_check int family_refuse_recorder(pid_t pid, enum mp_exit exit, struct mp_err *err);

/* Was the process forked while it was recorded?  False too for a vfork child, which shares its
 * parent's memory until it execs. */
bool family_is_child(pid_t pid);

/**
 * family_leave() - take out what is left of a session without a recorder
 * @t: after target_look()
 * That is a forked child's copy of its parent's, and one whose detach had to leave pages behind
 * (SS_DORMANT).  A session at work is not touched.
 * Return: 0, or as session_close() with @err.
 */
__must_check int family_leave(struct target *t, struct mp_err *err);

/**
 * family_restore() - restore all forked children that carry one of these sessions
 * @id: @n of them
 * @except: a process that is left alone (the recorded one, if it still carries it); 0: none
 * Goes on until a pass over /proc finds no more: children fork too.
 * Return: processes restored; *@left: how many still carry it.
 */
uint32_t family_restore(const struct session_id *id, size_t n, pid_t except, uint32_t *left);

/* For noticing that the process @pid, which carries a session, has been forked. */
struct family_watch {
	pid_t pid;
	VEC(pid_t) seen; /* processes that did not carry it */
};

/* Does another process carry the session?  Those that did not at an earlier call are not looked at
 * again.  Return: true also when that cannot be known.  family_forget() frees what @w has. */
bool family_grew(struct family_watch *w);
void family_forget(struct family_watch *w);

#endif
