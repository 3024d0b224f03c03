/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists allocations grouped by stack: those that pass the filter, and all of the stack. */
#ifndef EXPORT_GROUPS_H
#define EXPORT_GROUPS_H

#include <stdio.h>
#include "export/view.h"

struct model;

/* Parses "only_matched.size", "all.leaked_count" and so on.  Return: true with @sort set. */
bool groups_sort_key(const char *text, uint32_t *sort);
/* Return: the key's name, or NULL after the last one. */
const char *groups_sort_name(uint32_t sort);

/* Writes the list.  Return: 0 or a negative errno. */
int groups_write(struct model *m, const struct view *v, FILE *out);

#endif
