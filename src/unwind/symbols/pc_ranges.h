/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table that maps ranges of addresses, which can overlap, to numbers. */
#ifndef UNWIND_SYMBOLS_PC_RANGES_H
#define UNWIND_SYMBOLS_PC_RANGES_H

#include <stdint.h>
#include "lib/vec.h"

struct pc_range {
	uint64_t start, end;
	uint64_t reach; /* the largest end of this range and all before it */
	uint32_t value;
};

struct pc_ranges {
	VEC(struct pc_range) list;
};

/* Adds a range; pc_ranges_sort() must follow before the next search.  Return: 0 or -ENOMEM. */
int pc_ranges_add(struct pc_ranges *r, uint64_t start, uint64_t end, uint32_t value);
void pc_ranges_sort(struct pc_ranges *r);
/* Return: the range with the highest start that contains @pc, or NULL. */
const struct pc_range *pc_ranges_find(const struct pc_ranges *r, uint64_t pc);
void pc_ranges_free(struct pc_ranges *r);

#endif
