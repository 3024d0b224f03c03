/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocations grouped by stack: what the filter let through beside all of the stack. */
#ifndef REPORT_GROUPS_H
#define REPORT_GROUPS_H

#include <stdio.h>
#include "report/model.h"
#include "report/view.h"

/* Return: true with @sort set, for "only_matched.size", "all.leaked_count" and so on. */
bool groups_sort_key(const char *text, uint32_t *sort);
/* Return: the key's name, or NULL behind the last one. */
const char *groups_sort_name(uint32_t sort);

/* Return: 0 or a negative errno. */
int groups_write(struct model *m, const struct view *v, FILE *out);

#endif
