/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A list of numbers for each chain of reallocs that has not ended. */
#ifndef MODEL_HISTORY_LINKS_H
#define MODEL_HISTORY_LINKS_H

#include <stdint.h>
#include "lib/vec.h"

struct link {
	uint64_t value, count;
	uint32_t next; /* index; 0: none */
};

struct links {
	VEC(struct link) pool; /* [0] is not used */
	uint32_t unused;
	VEC(uint32_t) head; /* [chain] */
};

/* Adds @value @n times; combined with the link before if that has the same value.  Return: 0 or
 * -ENOMEM. */
int links_add(struct links *l, uint32_t chain, uint64_t value, uint64_t n);
/* Iterate over the list of @chain, last added first.  Return: the first link, or the one after @at;
 * NULL at the end. */
const struct link *links_of(const struct links *l, uint32_t chain);
const struct link *links_next(const struct links *l, const struct link *at);
void links_clear(struct links *l, uint32_t chain);
void links_free(struct links *l);

#endif
