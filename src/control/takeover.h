/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sessions whose recorder was killed: takes one over, with the live heap from its recording, or ends it. */
#ifndef CONTROL_TAKEOVER_H
#define CONTROL_TAKEOVER_H

#include "control/notices.h"
#include "inject/session.h"
#include "lib/err.h"
#include "record/pieces/carry.h"

/* Does the process carry a session at work whose recorder is gone?  False for a forked child. */
bool session_is_orphan(pid_t pid);
/* As session_is_orphan(), and also if the recorder was killed while it installed or restored hooks.  False for the
 * pages that a detach had to leave (SS_DORMANT). */
bool session_is_abandoned(pid_t pid);

/**
 * end_abandoned() - restore a process whose session is abandoned, and those that were forked from it
 * @t: after target_look()
 * Return: 0, or as session_close() with @err.
 */
int end_abandoned(struct target *t, struct mp_err *err);

/**
 * take_over_orphan() - continue an orphan session, and report what was carried over
 * @so: only recording, control and lossless are used; the session keeps its other options
 * @budget: bytes, see carry_fit()
 * Return: 0 with @s and @c filled; a negative errno with @err, then hooks and agent are unchanged.
 */
int take_over_orphan(struct session *s, struct target *t, const struct session_options *so,
		     uint64_t budget, const struct notices *notices, struct carry *c,
		     struct mp_err *err);

#endif
