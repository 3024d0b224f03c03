/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists sums by library, by thread and by size. */
#ifndef EXPORT_LISTS_SUM_LISTS_H
#define EXPORT_LISTS_SUM_LISTS_H

#include <stdbool.h>
#include <stdio.h>

struct model;

enum sums_by { SUMS_LIBRARY, SUMS_THREAD, SUMS_SIZE };

/**
 * sum_lists_write() - write a line (or object) for each library, thread or size class
 * For a library there are two sums: allocations by calls from it (the first frame outside the
 * allocator's own library; these add up to the totals), and allocations with it anywhere on the
 * stack.
 *
 * Return: 0 or a negative errno.
 */
int sum_lists_write(struct model *m, enum sums_by by, bool json, FILE *out);

#endif
