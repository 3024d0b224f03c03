/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table from ranges of addresses, which may overlap, to numbers. */
#ifndef UNWIND_PC_RANGES_H
#define UNWIND_PC_RANGES_H

#include <stdint.h>
#include "lib/vec.h"

struct pc_range {
	uint64_t start, end;
	uint64_t reach; /* the largest end of this and all before it */
	uint32_t value;
};

struct pc_ranges {
	VEC(struct pc_range) list;
};

/* Return: 0 or -ENOMEM.  Sort before the next search. */
int pc_ranges_add(struct pc_ranges *r, uint64_t start, uint64_t end, uint32_t value);
void pc_ranges_sort(struct pc_ranges *r);
/* Return: of the ranges that contain @pc the one that starts last, or NULL. */
const struct pc_range *pc_ranges_find(const struct pc_ranges *r, uint64_t pc);
void pc_ranges_free(struct pc_ranges *r);

#endif
