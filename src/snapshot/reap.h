/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a target reap dead copies of itself (attach/copy.h). */
#ifndef SNAPSHOT_REAP_H
#define SNAPSHOT_REAP_H

#include "attach/copy.h"

/**
 * reap_copy() - stop the target and make it reap
 * @c: a dead copy; or none, to reap only what a killed memprof has left
 * @gentle: stop a single thread
 * Return: 0 or a negative errno with @err; @t is released.
 */
int reap_copy(struct target *t, struct copy *c, bool gentle, struct mp_err *err);

/**
 * reap_killed() - make the target reap what a killed memprof has left of its copies
 * @anyway: stop the target even if there are none, so that a copy being made is complete
 * @n: set to the number of copies
 * Return: 0 or a negative errno with @err; @t is released.
 */
int reap_killed(struct target *t, bool anyway, uint32_t *n, struct mp_err *err);

/* Reaps the remains after a copy could not be made or ended.  Return: true if nothing is left. */
bool reap_remains(struct target *t);

#endif
