/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The live heap of a recording whose session goes on: read from its file. */
#ifndef CMD_CARRY_H
#define CMD_CARRY_H

#include "inject/session.h"
#include "lib/err.h"
#include "record/carry.h"

/* Does the process carry a session that was at work and has no recorder any more? */
bool session_is_orphan(pid_t pid);

/**
 * carry_on() - go on with such a session, and say on stderr what became of its heap
 * @so: of them recording, control and lossless count; the rest is as the session began
 * Return: 0 with @s and @c filled; a negative errno with @err, then the session is left as it was.
 */
int carry_on(struct session *s, struct target *t, const struct session_options *so, uint64_t budget,
	     struct carry *c, struct mp_err *err);

#endif
