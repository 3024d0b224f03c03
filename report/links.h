/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One list of numbers for each chain of reallocs that is still going on. */
#ifndef REPORT_LINKS_H
#define REPORT_LINKS_H

#include <stdint.h>
#include "lib/vec.h"

struct link {
	uint64_t value, count;
	uint32_t next; /* index; 0: none */
};

struct links {
	VEC(struct link) pool; /* [0] is nobody's */
	uint32_t unused;
	VEC(uint32_t) head; /* [chain] */
};

/* Adds @value @n times, as one link with the one before if that has the same.  Return: 0 or
 * -ENOMEM. */
int links_add(struct links *l, uint32_t chain, uint64_t value, uint64_t n);
/* The list of @chain, last added first: its first link or NULL, then links_next(). */
const struct link *links_of(const struct links *l, uint32_t chain);
const struct link *links_next(const struct links *l, const struct link *at);
void links_clear(struct links *l, uint32_t chain);
void links_free(struct links *l);

#endif
