/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recording's own answer, without reading its events. */
#ifndef REPORT_QUICK_H
#define REPORT_QUICK_H

#include "report/model.h"

/**
 * quick_load() - what is live at the end and from where, by the index at the end of the file
 * @m: filled with info, totals, stacks, symbols, losses and the live sums of groups; all other
 *	sums are 0.  m.quick is set.  Freed by model_free().
 *
 * Return: 0; -ENOENT with @m empty when the file has no index (its recorder was killed, or it was
 * copied by a tool); or another negative errno with @err filled.
 */
int quick_load(const char *path, struct model *m, struct mp_err *err);

#endif
