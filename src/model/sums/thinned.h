/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When a recording was thinned: its periods in which allocations represent several. */
#ifndef MODEL_SUMS_THINNED_H
#define MODEL_SUMS_THINNED_H

#include <stdbool.h>
#include <stdint.h>

#define THINNED_PERIODS 64u

struct thinned_period {
	uint64_t from_ns, to_ns;
	uint64_t recorded, represented; /* allocations with a weight; those that they represent */
	uint8_t most;			/* the largest weight */
};

/* Zero-initialize. */
struct thinned {
	struct thinned_period period[THINNED_PERIODS];
	uint32_t n;
	uint64_t gap_ns; /* a longer time without weights separates two periods */
};

/**
 * thinned_add() - add an allocation that represents 2^@weight
 * @time_ns: not before that of the last one, or by little.  If there are too many periods, those
 * with the shortest gaps become one.
 */
void thinned_add(struct thinned *t, uint64_t time_ns, uint8_t weight);
/* thinned_add() for @n allocations between two times. */
void thinned_add_many(struct thinned *t, uint64_t from_ns, uint64_t to_ns, uint8_t weight,
		      uint64_t n);
/* Return: whether a period overlaps the time from @from_ns to @to_ns. */
bool thinned_between(const struct thinned *t, uint64_t from_ns, uint64_t to_ns);

#endif
