/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists which sites grow: each with its live bytes over time and their shape (model/sums/shape.h), as JSON. */
#ifndef EXPORT_LISTS_GROWTH_LIST_H
#define EXPORT_LISTS_GROWTH_LIST_H

#include <stdio.h>
#include "export/lists/view.h"
#include "model/places.h"
#include "model/sums/shape.h"

struct model;

struct growth_list_options {
	enum group_by by; /* what a site is */
	enum growth only; /* shape; GROWTH_UNKNOWN: all */
	struct view view; /* skip and count */
};

/* Sorted by growth per minute, in the second half of the recording, highest first.  Return: 0 or a
 * negative errno. */
int growth_list_write(struct model *m, const struct growth_list_options *o, FILE *out);

#endif
