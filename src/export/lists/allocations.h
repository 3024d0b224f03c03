/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists the single allocations that pass the filter. */
#ifndef EXPORT_LISTS_ALLOCATIONS_H
#define EXPORT_LISTS_ALLOCATIONS_H

#include <stdio.h>
#include "export/lists/view.h"
#include "lib/err.h"
#include "lib/json_gen.h"
#include "model/filter/filter.h"

struct model;

/* The keys by which the list can be sorted; ends with NULL.  view.sort is an index. */
extern const char *const allocation_keys[];
/* Parses timestamp, address, size or lifetime.  Return: true with @sort set. */
bool allocations_sort_key(const char *text, uint32_t *sort);
/* Return: the key's name, or NULL after the last one. */
const char *allocations_sort_name(uint32_t sort);

/* Writes the keys that say which allocator a block is from. */
void allocation_kind_json(yajl_gen g, enum allocator kind);

/**
 * allocations_write() - write the list; reads the recording again
 * @total: set to the number of entries before skip and count
 *
 * Needs memory for about twice @v->skip + @v->count entries.
 *
 * Return: 0, or a negative errno with @err filled.
 */
int allocations_write(struct model *m, const struct view *v, FILE *out, uint64_t *total,
		      struct mp_err *err);

#endif
