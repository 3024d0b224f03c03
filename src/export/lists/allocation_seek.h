/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds a part that is far down a sorted list of allocations, without collecting what comes before. */
#ifndef EXPORT_LISTS_ALLOCATION_SEEK_H
#define EXPORT_LISTS_ALLOCATION_SEEK_H

#include <stdbool.h>
#include <stdint.h>
#include "export/lists/allocation_pass.h"
#include "export/lists/view.h"

/* A place in the list. */
struct allocation_place {
	/* For allocations_collect(): only its place in the order is set.  It need not be in the list. */
	struct allocation after;
	bool at_start;	 /* before the first entry; after is not set */
	uint64_t before; /* entries of the list before the place */
};

/**
 * allocations_seek() - find a place in the list that is not far before entry number @v->skip
 * @within: entries between the two, at most
 *
 * Reads the recording several times, up to about six, and needs 8 MB.  If the list is not that long, the place
 * is its end.  Return: 0 with @place filled, or a negative errno with @err.
 */
int allocations_seek(const struct model *m, const struct view *v, uint64_t within,
		     struct allocation_place *place, struct mp_err *err);

#endif
