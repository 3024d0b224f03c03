/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A countdown belongs to one thread; a signal handler between two of its instructions costs at most
 * one sample too many or too few.  The set of sampled blocks is shared by all threads: every change
 * is one compare-and-swap, every search is limited to one bucket, and an address is only added or
 * removed by the thread that owns the block.
 */
#include "agent/countdown.h"
#include "agent/ring.h"
#include "agent/sample.h"

#define WAYS  16 /* per bucket: two cache lines */
#define TRIES 64
#define STUCK 255

/* Return: the level for the thread's next countdown.  If the recorder is too slow, the thread's ring
 * fills up, and its own level rises. */
static uint32_t level_now(struct ss_control *c, struct ag_thread *t)
{
	const struct perf_event_mmap_page *page = ag_ring_page(c, t);
	uint64_t fill = *(const volatile uint64_t *)&page->data_head -
			__atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	uint64_t level = *(volatile uint32_t *)&c->sample_level, own = 0;

	if (unlikely(fill >= c->ring_thin))
		own = SS_LEVEL_MIN + ((fill - c->ring_thin) >> (c->ring_shift & 63)) / 2;
	level = own > level ? own : level;
	return level < SS_LEVEL_MAX ? (uint32_t)level : SS_LEVEL_MAX;
}

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
		if (c->overhead_ppm)
			ag_countdown_restart(s, level_now(c, t));
		else
			s->left = ag_countdown_draw(s, c->sample_interval);
	}
	return s;
}

uint32_t ag_sampler_choose(const struct ag_call *call, uint64_t size)
{
	struct ss_control *c = call->c;
	struct ss_local *s = call->sampler;
	uint32_t k;

	if (!c->overhead_ppm)
		return ag_countdown_passes(s, size, c->sample_interval) ? 0 : AG_NOT_CHOSEN;
	ag_sampler_note_skipped(call->t, s);
	if (s->left >= 0)
		s->left = (int64_t)((uint64_t)s->left - size);
	if (s->left >= 0)
		return AG_NOT_CHOSEN;
	k = ag_countdown_weigh(c->part, s, size);
	ag_countdown_restart(s, level_now(c, call->t));
	return k;
}

void ag_sampler_note_skipped(struct ag_thread *t, const struct ss_local *s)
{
	if (s->left != s->drawn)
		t->thinning.skipped = 1;
}

struct ss_local *ag_sampler_of(struct ag_thread *t)
{
	struct ss_local *s = ag_local_of(t->s.tp);

	return (s->tp & ~SS_LOCAL_BUSY) == t->s.tp ? s : &t->sampler;
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
