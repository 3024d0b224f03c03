/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sampling mode: how far each thread is from its next sample, and which live blocks are sampled.
 * In other modes the set has the live blocks that were thinned out (thin.h).
 */
#ifndef AGENT_SAMPLE_H
#define AGENT_SAMPLE_H

#include "agent/agent.h"

/* Return: the calling thread's countdown, initialized if needed.  It is marked busy: until
 * ag_sampler_leave() the entry code counts nothing, so that inner calls are not counted twice. */
struct ss_local *ag_sampler_enter(struct ss_control *c, struct ag_thread *t);
void ag_sampler_leave(const struct ag_thread *t, struct ss_local *s);

/* Adds a block to the set.  Return: false if there is no room. */
bool ag_sampled_add(struct ss_control *c, uint64_t block);
/* Removes a block from the set.  Return: whether it was in it. */
bool ag_sampled_take(struct ss_control *c, uint64_t block);
/* As ag_sampled_take(), with a look at the filter first. */
bool ag_thinned_take(struct ss_control *c, uint64_t block);

/* A block ends.  Return: whether it was thinned out, so that its end is not recorded either. */
static inline bool ag_thinned_ends(struct ss_control *c, uint64_t block)
{
	return unlikely(c->thinned_out) && ag_thinned_take(c, block);
}

#endif
