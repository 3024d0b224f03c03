/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef REPORT_LIBRARIES_H
#define REPORT_LIBRARIES_H

#include "report/model.h"

struct library {
	const char *name;      /* NULL: unknown, or no stack */
	struct group direct;   /* its own calls of the allocator: sums only */
	struct group anywhere; /* with it on the stack, each allocation once */
	uint32_t seen;
};

struct libraries {
	VEC(struct library) at;
};

/* Libraries of all stacks that something was allocated with, most allocated bytes first.
 * Return: 0 or -ENOMEM; freed by vec_free(&l->at). */
int libraries_sum(const struct model *m, struct libraries *l);

#endif
