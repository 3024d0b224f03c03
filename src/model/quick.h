/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the sums that the recording itself has, without reading its events. */
#ifndef MODEL_QUICK_H
#define MODEL_QUICK_H

#include "lib/err.h"

struct model;

/**
 * quick_load() - read what is live at the end, by stack, from the index at the end of the file
 * @m: filled with info, totals, stacks, symbols, losses and the live sums of groups; all other sums
 * are 0.  m.source.quick is set.  To be freed by model_free().
 *
 * Return: 0; -ENOENT with @m empty if the file has no index (its recorder was killed, or a tool
 * copied it); or another negative errno with @err filled.
 */
int quick_load(const char *path, struct model *m, struct mp_err *err);

#endif
