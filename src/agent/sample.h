/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sampling mode, at a constant interval or within a budget: how far each thread is from its next
 * sample, and which live blocks are sampled.  In other modes the set has the live blocks that were
 * thinned out (thin.h).
 */
#ifndef AGENT_SAMPLE_H
#define AGENT_SAMPLE_H

#include "agent/agent.h"

/* Return: the calling thread's countdown, initialized if needed.  It is marked busy: until
 * ag_sampler_leave() the entry code counts nothing, so that inner calls are not counted twice. */
struct ss_local *ag_sampler_enter(struct ss_control *c, struct ag_thread *t);
void ag_sampler_leave(const struct ag_thread *t, struct ss_local *s);

/*
 * Counts a request of @size bytes in the countdown call->sampler, and decides whether it is sampled.
 * Return: k if it is and represents 2^k requests (0 at a constant interval), or AG_NOT_CHOSEN.
 */
uint32_t ag_sampler_choose(const struct ag_call *call, uint64_t size);

/* With a budget, before a record of the thread that ends a block: notes whether the thread has
 * made requests since its latest sample.  Only the countdown shows those that did not enter the agent. */
void ag_sampler_note_skipped(struct ag_thread *t, const struct ss_local *s);
/* Return: the countdown of @t, the calling thread. */
struct ss_local *ag_sampler_of(struct ag_thread *t);

/*
 * With a budget, one call of SS_TIMED_CALLS is timed for the recorder, without the original function:
 * begin, pause, continue, pause.  Return: the time to pass on, in ticks; 0: this call is not timed.
 */
static inline uint64_t ag_timer_begin(const struct ss_control *c, struct ag_thread *t)
{
	if (!c->overhead_ppm)
		return 0;
	return t->s.calls++ % SS_TIMED_CALLS ? 0 : ag_ticks();
}

static inline uint64_t ag_timer_continue(uint64_t since)
{
	return since ? ag_ticks() : 0;
}

/* A thread that is preempted meanwhile counts for little. */
static inline void ag_timer_pause(const struct ss_control *c, struct ag_thread *t, uint64_t since,
				  bool records)
{
	uint64_t spent = since ? ag_ticks() - since : 0;

	t->s.spent[records] += spent < c->spent_max ? spent : c->spent_max;
}

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
