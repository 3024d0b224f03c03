/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How much single functions grew between the two sides of a diff, for a limit in scripts. */
#ifndef EXPORT_DIFF_GROWTH_H
#define EXPORT_DIFF_GROWTH_H

#include <stdint.h>
#include "export/diff.h"
#include "lib/vec.h"

/* The change of all stacks whose innermost frame outside the allocator's library and the C++ library
 * is in one function (and line, if the diff compares lines). */
struct diff_growth {
	const struct frame *frame; /* in the diff; NULL: there is no stack */
	int64_t change;
};

struct diff_growths {
	VEC(struct diff_growth) list; /* the largest growth first */
};

/* Return: 0 with @g filled (to be freed by vec_free(&g->list); valid as long as @d), or -ENOMEM. */
int diff_growths_find(const struct diff *d, struct diff_growths *g);

#endif
