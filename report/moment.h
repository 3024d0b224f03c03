/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sums of a recording as they were at one moment. */
#ifndef REPORT_MOMENT_H
#define REPORT_MOMENT_H

#include "report/model.h"

/**
 * moment_groups() - sums of every stack from the start up to @at_ns
 * @groups: set to m->nstacks entries, freed by the caller; live is what was live then
 *
 * Reads the recording up to there once more, with the filter of @m.  Return: 0, or a negative errno
 * with @err filled.
 */
int moment_groups(const struct model *m, uint64_t at_ns, struct group **groups, struct mp_err *err);

#endif
