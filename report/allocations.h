/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The single allocations that the filter let through. */
#ifndef REPORT_ALLOCATIONS_H
#define REPORT_ALLOCATIONS_H

#include <stdio.h>
#include "lib/err.h"
#include "report/model.h"
#include "report/view.h"

/* Return: true with @sort set, for timestamp, address, size, lifetime. */
bool allocations_sort_key(const char *text, uint32_t *sort);
/* Return: the key's name, or NULL behind the last one. */
const char *allocations_sort_name(uint32_t sort);

/**
 * allocations_write() - reads the recording once more
 * Needs memory for about twice @v->skip + @v->count entries, and for each chain of reallocs.
 *
 * Return: 0, or a negative errno with @err filled.
 */
int allocations_write(struct model *m, const struct view *v, FILE *out, struct mp_err *err);

#endif
