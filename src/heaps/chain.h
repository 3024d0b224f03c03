/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Detects a cycle while following a linked list that might be damaged (Brent's algorithm, in
 * constant memory):
 *
 *	struct chain c = {0};
 *	for (at = first; at && !chain_cycles(&c, at); at = next(at))
 */
#ifndef HEAPS_CHAIN_H
#define HEAPS_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

struct chain {
	uint64_t mark, steps, limit;
};

/* Return: true if the list was at @at before.  Walks at most about three times the list's length.
 */
static inline bool chain_cycles(struct chain *c, uint64_t at)
{
	if (at == c->mark)
		return true;
	if (c->steps++ == c->limit) {
		c->mark = at;
		c->limit = 2 * c->limit + 1;
	}
	return false;
}

#endif
