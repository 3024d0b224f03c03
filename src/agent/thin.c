/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "agent/thin.h"

#define GOLDEN	    0x9e3779b97f4a7c15ull
#define MOST	    15u		/* 2^15: more would only enlarge the errors */
#define EXACT_BYTES (64u << 10) /* larger blocks are always recorded */

/* xorshift64 (Marsaglia 2003). */
static uint64_t draw(struct ag_thinning *s, const struct ag_thread *t)
{
	if (unlikely(!s->random))
		s->random = (ag_ticks() ^ t->s.tp) * GOLDEN | 1;
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random >> 20;
}

static void begin_window(struct ag_thinning *s, uint64_t now)
{
	s->window = now;
	for (uint32_t i = 0; i < AG_KINDS; i++) {
		s->kind[0][i] /= 2;
		s->kind[1][i] /= 2;
	}
}

static uint32_t count(uint16_t *n)
{
	*n += *n < UINT16_MAX;
	return *n;
}

/*
 * Allocations by the same caller, at the same depth of the stack and of the same binary order of
 * size are one kind.  (A walk of the stack would tell them apart better, but it is what thinning
 * saves.)  Return: how rare the kind is in this thread: 0 for the most frequent ones, 1 more for
 * each half.
 */
static uint32_t rarity(const struct ag_call *call, uint64_t now, uint64_t size)
{
	struct ag_thinning *s = &call->t->thinning;
	uint32_t order = 32 - (uint32_t)__builtin_clz((uint32_t)size | 1), a, b;
	uint64_t h = (ag_frame_sp(call->f) << 8 | order) * GOLDEN;

	h = (h + call->f->return_address) * GOLDEN;
	if (now - s->window >= call->c->thin_window)
		begin_window(s, now);
	/* A kind that shares one entry with a frequent one seldom shares the other, too. */
	a = count(&s->kind[0][h >> 32 & (AG_KINDS - 1)]);
	b = count(&s->kind[1][h >> 48 & (AG_KINDS - 1)]);
	/* Never 0, unless a signal handler has begun a window meanwhile. */
	return (uint32_t)__builtin_clz((a < b ? a : b) | 1) - (32 - AG_KINDS_BITS);
}

/* Return: how much to thin; 0: not at all. */
static uint32_t pressure(struct ss_control *c, struct ag_thread *t)
{
	struct perf_event_mmap_page *page = ag_ring_page(c, t);
	uint32_t common = c->pressure, own;
	uint64_t fill;

	t->s.tail_seen = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	fill = *(volatile uint64_t *)&page->data_head - t->s.tail_seen;
	if (fill < c->ring_thin)
		return common;
	own = 1 + (uint32_t)((fill - c->ring_thin) >> (c->ring_shift & 63));
	return own > common ? own : common;
}

/*
 * The coin decides only between thinning out and recording with weight 2^k; all else is settled
 * before it, and does not depend on it.  So the expected weight is 1.
 */
uint32_t ag_thin_slowly(const struct ag_call *call, uint64_t now, uint64_t block, uint64_t size)
{
	struct ss_control *c = call->c;
	struct ag_thread *t = call->t;
	uint32_t level = pressure(c, t), rare, k;

	if (c->thinned_out) {
		/* A block whose end was not seen is still in the set. */
		ag_thinned_take(c, block);
		t->thinning.skipped = 0;
	}
	if (!level || size >= EXACT_BYTES)
		return 0;
	rare = rarity(call, now, size);
	k = level > rare ? level - rare : 0;
	if (k > MOST)
		k = MOST;
	/* Without room in the set the block's end would be taken for that of an unknown block. */
	if (!k || !ag_sampled_add(c, block))
		return 0;
	if (!(draw(&t->thinning, t) & ((1u << k) - 1))) {
		ag_sampled_take(c, block);
		return k;
	}
	c->thinned_out = 1;
	c->thin_from = 0;
	t->thinning.skipped = 1;
	t->s.thinned_out++;
	t->s.thinned_bytes += size;
	return AG_THINNED_OUT;
}
