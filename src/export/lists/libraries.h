/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sums of allocations by library. */
#ifndef EXPORT_LISTS_LIBRARIES_H
#define EXPORT_LISTS_LIBRARIES_H

#include "lib/vec.h"
#include "model/group.h"

struct model;

struct library {
	const char *name;      /* NULL: unknown, or no stack */
	struct group direct;   /* allocations by its own calls of the allocator: sums only */
	struct group anywhere; /* allocations with it on the stack, each counted once */
	uint32_t seen;
};

struct libraries {
	VEC(struct library) at;
};

/* Sums up the libraries of all stacks with allocations, sorted by allocated bytes, most first.
 * Return: 0 or -ENOMEM; to be freed by vec_free(&l->at). */
int libraries_sum(const struct model *m, struct libraries *l);

#endif
