/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes the sums of a recording at a moment. */
#ifndef MODEL_SUMS_AT_TIME_H
#define MODEL_SUMS_AT_TIME_H

#include "lib/err.h"
#include "model/group.h"

struct model;

/**
 * at_time_groups() - sum up every stack from the start to @at_ns
 * @groups: set to m->stacks.n entries, to be freed by the caller; live is what was live at @at_ns
 *
 * Reads the recording up to there again, with the filter of @m.  Return: 0, or a negative errno
 * with @err filled.
 */
int at_time_groups(const struct model *m, uint64_t at_ns, struct group **groups,
		   struct mp_err *err);

#endif
