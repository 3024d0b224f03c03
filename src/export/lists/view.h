/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the lists of a report: the part of a list, and its order. */
#ifndef EXPORT_LISTS_VIEW_H
#define EXPORT_LISTS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#define VIEW_ALL UINT64_MAX

struct view {
	uint32_t sort; /* one of the list's own keys */
	bool descending;
	uint64_t skip, count; /* count: VIEW_ALL: to the end */
	bool json;	      /* false: text */
};

/* Return: the end of the part of a list of @n entries.  The part begins at @v->skip, if that is
 * less. */
static inline uint64_t view_end(const struct view *v, uint64_t n)
{
	if (v->skip >= n || v->count > n - v->skip)
		return n;
	return v->skip + v->count;
}

#endif
