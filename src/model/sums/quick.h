/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the sums that the recording itself has, without reading its events. */
#ifndef MODEL_SUMS_QUICK_H
#define MODEL_SUMS_QUICK_H

#include <stdint.h>
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

/**
 * quick_follow() - put what a recorder has just written (record/view.h) into a model
 * @m: zeroed at first; to be freed by model_free(), also after an error
 * @fd: of the view
 * @name: of the recording that it is of
 * @from: 0 at first; set to the first stack id that is not in the model
 *
 * The sums replace those that the model has; stacks, names, modules and threads are added, and what was
 * found for the others stays valid.  Also filled are allocations, allocated_bytes, temporary and
 * variance_live of each group, and allocations, allocated_bytes and temporary of each thread.
 * Return: 0 or a negative errno with @err; then @m is incomplete.
 */
int quick_follow(struct model *m, int fd, const char *name, uint32_t *from, struct mp_err *err);

#endif
