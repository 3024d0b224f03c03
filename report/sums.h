/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sums by library, by thread and by size. */
#ifndef REPORT_SUMS_H
#define REPORT_SUMS_H

#include <stdio.h>
#include "report/model.h"

enum sums_by { SUMS_LIBRARY, SUMS_THREAD, SUMS_SIZE };

/**
 * sums_write() - one line (or object) for each library, thread or class of sizes
 * A library has what was allocated by calls from it (the first frame outside the allocator's own
 * library; these add up to the totals) and what was allocated with it anywhere on the stack.
 *
 * Return: 0 or a negative errno.
 */
int sums_write(struct model *m, enum sums_by by, bool json, FILE *out);

#endif
