/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares for qsort(3) and bsearch(3). */
#ifndef LIB_BY_NUMBER_H
#define LIB_BY_NUMBER_H

#include <stdint.h>

/* Ascending order of uint64_t values, or of structs that begin with one. */
static inline int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Whether the uint64_t @number is below, in or above @range, a struct that begins with two: its start, and its end,
 * which is not in it. */
static inline int by_range(const void *number, const void *range)
{
	const uint64_t n = *(const uint64_t *)number, *bounds = range;

	return n < bounds[0] ? -1 : n >= bounds[1];
}

#endif
