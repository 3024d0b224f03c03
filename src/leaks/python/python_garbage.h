/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tells leaked objects of Python from those that its garbage collector will free.
 *
 * Objects that only refer to each other in a ring are unreachable until the collector's next run.
 * They are no leak.  An object is leaked if its count of references is higher than the number of
 * words in unreachable blocks that refer to it: then a reference was counted and lost.  All
 * that it refers to is leaked with it.
 */
#ifndef LEAKS_PYTHON_PYTHON_GARBAGE_H
#define LEAKS_PYTHON_PYTHON_GARBAGE_H

#include "leaks/graph.h"
#include "leaks/mark.h"

/* Drops from @l the leaks that are garbage which Python's collector will free, or that Python is
 * freeing, and counts them in @l->garbage_count and .garbage_bytes.  Return: 0 or -ENOMEM. */
int python_garbage(struct leaks *l, const struct graph *g, struct image *img);

#endif
