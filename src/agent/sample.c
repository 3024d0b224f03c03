/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A countdown belongs to one thread; a signal handler between two of its instructions costs at most
 * one sample too many or too few.  The set of sampled blocks is shared by all threads: every change
 * is one compare-and-swap, every search is limited to one bucket, and an address is only added or
 * removed by the thread that owns the block.
 */
#include "agent/countdown.h"
#include "agent/sample.h"

#define WAYS  16 /* per bucket: two cache lines */
#define TRIES 64
#define STUCK 255

struct ss_local *ag_sampler_enter(struct ss_control *c, struct ag_thread *t)
{
	uint64_t busy = t->s.tp | SS_LOCAL_BUSY, unowned = 0;
	struct ss_local *s = ag_local_of(t->s.tp);

	if (unlikely(s->tp != t->s.tp && s->tp != busy) &&
	    !__atomic_compare_exchange_n(&s->tp, &unowned, busy, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		s = &t->sampler;
	s->tp = busy;
	if (unlikely(!s->random)) {
		s->random = ag_ticks() * 0x9e3779b97f4a7c15ull ^ t->s.tp;
		s->random += !s->random;
		for (int i = 0; i < 8; i++)
			ag_countdown_random(s);
		s->left = ag_countdown_draw(s, c->sample_interval);
	}
	return s;
}

void ag_sampler_leave(const struct ag_thread *t, struct ss_local *s)
{
	s->tp = t->s.tp;
}

/* agent-entry.S computes the same. */
static uint8_t *filter_of(uint64_t block)
{
	uint64_t h = block >> 4;

	return *AG_OWN(ag_filter) + (h ^ h >> 16) % SS_FILTER;
}

static uint64_t *ag_bucket_of(struct ss_control *c, uint64_t block)
{
	uint64_t h = (block >> 4) * 0x9e3779b97f4a7c15ull;

	return (uint64_t *)ag_at_offset(c, c->sampled) +
	       (h >> 32 & (c->nsampled - 1) & ~(WAYS - 1ull));
}

/* @by: 1 or -1.  Return: false if other threads changed the counter at every attempt. */
static bool filter_add(uint64_t block, int by)
{
	uint8_t *f = filter_of(block), old = __atomic_load_n(f, __ATOMIC_RELAXED);

	for (int i = 0; i < TRIES; i++) {
		if (old == STUCK || __atomic_compare_exchange_n(f, &old, (uint8_t)(old + by), false,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

bool ag_sampled_add(struct ss_control *c, uint64_t block)
{
	uint64_t *way = ag_bucket_of(c, block);

	/* Still in the set: its free was not seen (stale, or its hook was left). */
	for (int i = 0; i < WAYS; i++) {
		if (unlikely(way[i] == block))
			return true;
	}
	if (!filter_add(block, 1))
		return false;
	for (int i = 0; i < WAYS; i++) {
		uint64_t empty = 0;

		if (!way[i] && __atomic_compare_exchange_n(&way[i], &empty, block, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	filter_add(block, -1);
	return false;
}

bool ag_sampled_take(struct ss_control *c, uint64_t block)
{
	uint64_t *way = ag_bucket_of(c, block);

	for (int i = 0; i < WAYS; i++) {
		uint64_t it = block;

		if (way[i] == block &&
		    __atomic_compare_exchange_n(&way[i], &it, 0, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			filter_add(block, -1); /* if it fails, frees search once more than needed */
			return true;
		}
	}
	return false;
}

bool ag_thinned_take(struct ss_control *c, uint64_t block)
{
	return __atomic_load_n(filter_of(block), __ATOMIC_RELAXED) && ag_sampled_take(c, block);
}
