/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stacks and threads had at earlier looks, for rates and for growth since a mark. */
#ifndef TOP_PAST_H
#define TOP_PAST_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"

struct model;

#define PAST_MOMENTS 6 /* the rates are those from the first to the last of these */

struct past_sum {
	uint64_t live_bytes, allocations, allocated_bytes, temporary;
};

struct past_moment {
	uint64_t time_ns;
	VEC(struct past_sum) stacks;  /* by stack id; others had nothing */
	VEC(struct past_sum) threads; /* by index in tasks.threads, which only grows */
	struct past_sum total;
};

/* Zero-initialize; to be freed by past_free(). */
struct past {
	struct past_moment at[PAST_MOMENTS]; /* a ring */
	uint32_t n;			     /* looks so far; the last is at[(n - 1) % PAST_MOMENTS] */
	struct past_moment mark;
	bool marked;
};

/* Adds the present state of @m.  A time that is not later than the last one replaces it.  Return: 0
 * or -ENOMEM, with the past unchanged. */
int past_add(struct past *p, const struct model *m);
/* Makes the present state of @m the one that growth is counted from.  Return: 0 or -ENOMEM. */
int past_mark(struct past *p, const struct model *m);
/* Return: the oldest moment that rates are counted from, or NULL if there is only one. */
const struct past_moment *past_first(const struct past *p);
/* Return: seconds from past_first() to the last moment; 0 if there is none. */
double past_span(const struct past *p);
void past_free(struct past *p);

#endif
