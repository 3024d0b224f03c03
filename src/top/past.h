/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stacks and threads had at earlier looks, for rates and for growth since a mark. */
#ifndef TOP_PAST_H
#define TOP_PAST_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"

struct group;
struct model;
struct model_thread;

#define PAST_MOMENTS 6 /* the rates are those from the first to the last of these */

struct past_sum {
	uint64_t live_bytes; /* of a thread 0: not known */
	uint64_t allocations, allocated_bytes, temporary;
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
	uint32_t n; /* looks so far; the last is at[(n - 1) % PAST_MOMENTS] */
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

/* Return: what stack @id had at the moment; nothing if it was not there yet. */
struct past_sum past_stack(const struct past_moment *at, uint32_t id);
/* Return: the same of the thread with this index in tasks.threads. */
struct past_sum past_thread(const struct past_moment *at, uint32_t i);
/* Return: what a stack, the total or a thread has now. */
struct past_sum past_of_group(const struct group *g);
struct past_sum past_of_thread(const struct model_thread *t);

void past_free(struct past *p);

#endif
