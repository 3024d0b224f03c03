/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists allocations grouped by stack: those that pass the filter, and all of the stack. */
#ifndef EXPORT_LISTS_GROUPS_H
#define EXPORT_LISTS_GROUPS_H

#include <stdio.h>
#include "export/lists/view.h"
#include "lib/json_gen.h"

struct group;
struct model;

/* The keys by which the list can be sorted; ends with NULL.  view.sort is an index. */
extern const char *const group_keys[];
/* Parses "only_matched.size", "all.leaked_count" and so on.  Return: true with @sort set. */
bool groups_sort_key(const char *text, uint32_t *sort);
/* Return: the key's name, or NULL after the last one. */
const char *groups_sort_name(uint32_t sort);

/* Writes the keys with the counts of a group. */
void groups_json_counts(yajl_gen g, const struct group *gr);

/* Return: the sums of all allocations with stack @id, whatever the filter. */
const struct group *groups_all(const struct model *m, uint32_t id);
/* Return: the stacks that have allocations that pass the filter, in the list's order, to be freed
 * by the caller; NULL when out of memory. */
uint32_t *groups_order(const struct model *m, const struct view *v, uint64_t *n);

/* Writes the list.  Return: 0 or a negative errno. */
int groups_write(struct model *m, const struct view *v, FILE *out);

#endif
