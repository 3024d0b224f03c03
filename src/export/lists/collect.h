/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collects a part of a sorted list of allocations, without keeping all of them. */
#ifndef EXPORT_LISTS_COLLECT_H
#define EXPORT_LISTS_COLLECT_H

#include "export/lists/allocation_pass.h"
#include "export/lists/view.h"
#include "lib/err.h"
#include "lib/vec.h"

struct model;

struct allocations {
	VEC(struct allocation) at;    /* sorted; the first view.skip + view.count ones */
	VEC(struct chain_end) chains; /* at least those of them */
	uint64_t total;
};

/**
 * allocations_collect() - read the recording for a part of the list
 * @after: the part begins after this entry; NULL: at the first one
 * @a: filled; a.total is the length of the whole list
 *
 * Needs memory for about twice @v->skip + @v->count entries, so that a long list can be collected
 * part by part.  Return: 0 with @a filled, to be freed by allocations_free(), or a negative errno
 * with @err.
 */
int allocations_collect(const struct model *m, const struct view *v, const struct allocation *after,
			struct allocations *a, struct mp_err *err);
void allocations_free(struct allocations *a);
/* Return: the end of @at's chain, or NULL if it is the only member. */
const struct chain_end *allocations_chain(const struct allocations *a, const struct allocation *at);

#endif
