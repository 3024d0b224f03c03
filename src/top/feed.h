/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Looks at a recording that is going on: asks its recorder for the sums of each stack and thread,
 * in a thread of its own, because the recorder can need a while for the symbols of new stacks.
 *
 * The model belongs to the caller of these functions, who can use it between two feed_take().
 */
#ifndef TOP_FEED_H
#define TOP_FEED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"

struct feed;
struct model;

/* What the recorder says about itself, as of the last look. */
struct feed_state {
	bool paused;	    /* new blocks are left out */
	bool can_thin;	    /* feed_thin() is possible */
	uint32_t least;	    /* the last feed_thin() */
	uint64_t behind_ns; /* the sums are what they were this long before facts.end_ns */
};

/**
 * feed_open() - begin to look at the recording of process @pid
 *
 * Waits until the first look is there, which feed_take() then takes.
 * Return: 0 with @f, to be freed by feed_close(), or a negative errno with @err.
 */
int feed_open(pid_t pid, struct feed **f, struct mp_err *err);
void feed_close(struct feed *f);

/* Return: a descriptor that is readable when feed_take() has something to return. */
int feed_fd(const struct feed *f);
/* Asks for the next look, unless one is under way.  Does not wait. */
void feed_ask(struct feed *f);
/* Puts the look that is ready into the model.  Return: 1 the model has changed; 0 no look is ready;
 * or a negative errno with @err: the recording has ended, or the recorder does not answer. */
int feed_take(struct feed *f, struct mp_err *err);

/*
 * Return: the model.  It has sums without events: of each stack (sums.group) live_bytes, live_blocks,
 * allocations, allocated_bytes, temporary and variance_live; of all (sums.total) the same and frees;
 * of each thread (tasks.threads) allocations, allocated_bytes and temporary, but not what is live.
 * facts.end_ns is the time of the look; facts.losses is complete; facts.samples has the last one.
 */
struct model *feed_model(struct feed *f);
const struct feed_state *feed_state(const struct feed *f);

/* The functions below send a request and wait for the answer.  Return: 0 or a negative errno with
 * @err. */
int feed_mark(struct feed *f, const char *name, struct mp_err *err);
int feed_pause(struct feed *f, bool pause, struct mp_err *err);
/* Samples: of allocations of one kind (agent/thin.c) by one thread, at most feed_kept() a second are
 * recorded, until this is set to 0; from then on new allocations are exact again as long as the
 * recorder can follow (doc/thinning.md).  @least: 0 or 8 to 12 */
int feed_thin(struct feed *f, uint32_t least, struct mp_err *err);

/* Return: allocations a second.  A kind with 2^15 to 2^16 allocations in a 128th of a second is thinned to one
 * in 2^@least, one with half as many to one in half of that (agent/agent.h, record/reader.c). */
static inline uint32_t feed_kept(uint32_t least)
{
	return 1u << (23 - least);
}

#endif
