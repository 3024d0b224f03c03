/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include "record/aggregator.h"
#include "record/order/overtaken.h"

/* Return: whether @b represents only itself, the usual case. */
static inline bool is_exact(const struct aggregator *a, const struct live_block *b)
{
	return !b->weight && !a->config->info.sample_interval;
}

struct estimate block_estimate(const struct aggregator *a, const struct live_block *b)
{
	if (is_exact(a, b))
		return (struct estimate){.blocks = 1, .bytes = b->size, .factor = 1};
	return estimate_block(a->config->info.sample_interval, b->size, b->weight,
			      b->addr ^ b->size << 48 ^ b->stack);
}

void block_account(struct aggregator *a, const struct live_block *b, enum block_change change)
{
	struct level_change c = {.time_ns = a->last_ns,
				 .bytes = b->size,
				 .blocks = 1,
				 .stack = b->stack,
				 .ends = change == BLOCK_ENDS,
				 .carried = change == BLOCK_IS_CARRIED};

	if (!is_exact(a, b)) {
		struct estimate e = block_estimate(a, b);

		c.bytes = e.bytes;
		c.blocks = e.blocks;
		if (e.variance_bytes > 0)
			tallies_vary(&a->tallies, b->stack,
				     c.ends ? -e.variance_bytes : e.variance_bytes);
	}
	if (levels_change(&a->levels, &c))
		a->now.error = -ENOMEM;
}

void block_ended(struct aggregator *a, const struct live_block *b)
{
	block_account(a, b, BLOCK_ENDS);
	a->now.frees += 1ull << b->weight;
}

/* Puts @entry, whose stack is as in the live table, there.  @old: with its stack id. */
static int put_entry(struct aggregator *a, const struct live_block *entry, struct live_block *old)
{
	if (live_put(a->live, entry, old))
		return -ENOMEM;
	if (!old->addr)
		return 0;
	if (old->stack & LIVE_IS_HELD) {
		uint32_t number = old->stack & ~LIVE_IS_HELD;

		old->stack = cull_born(a->cull, number)->stack;
		cull_forget(a->cull, number);
	} else if (a->origins) {
		old->stack = origins_take(a->origins, old->stack).stack;
	}
	return 0;
}

int block_put(struct aggregator *a, const struct live_block *b, const struct origin *origin,
	      struct live_block *old)
{
	struct live_block entry = *b;

	if (a->origins && origins_add(a->origins, origin, &entry.stack))
		return -ENOMEM;
	return put_entry(a, &entry, old);
}

static struct origin origin_of(const struct mp_event *ev)
{
	return (struct origin){.time_ns = ev->time_ns,
			       .stack = ev->stack,
			       .tid = ev->tid,
			       .slack = (uint32_t)(ev->usable - ev->size),
			       .hook = ev->hook,
			       .flags = ev->flags & (EV_F_NON_MAIN | EV_F_MMAPPED)};
}

bool block_take(struct aggregator *a, uint64_t addr, struct known_block *b)
{
	if (!live_take(a->live, addr, &b->of))
		return false;
	b->held = CULL_NONE;
	if (b->of.stack & LIVE_IS_HELD) {
		b->held = b->of.stack & ~LIVE_IS_HELD;
		b->origin = origin_of(cull_born(a->cull, b->held));
		b->of.stack = b->origin.stack;
	} else if (a->origins) {
		b->origin = origins_take(a->origins, b->of.stack);
		b->of.stack = b->origin.stack;
	}
	return true;
}

void block_let_go(void *aggregator, const struct mp_event *ev)
{
	struct aggregator *a = aggregator;
	struct live_block entry = {ev->addr, ev->size, ev->stack, ev->weight}, old;
	struct origin origin = origin_of(ev);

	/* It replaces the entry with the number, so only memory for the origin can be missing. */
	if ((a->origins && origins_add(a->origins, &origin, &entry.stack)) ||
	    live_put(a->live, &entry, &old))
		a->now.error = -ENOMEM;
}

void block_replaced(struct aggregator *a, const struct live_block *old)
{
	block_ended(a, old);
	a->losses.mismatches++;
}

void block_ahead(void *aggregator, uint64_t addr)
{
	live_prefetch(((const struct aggregator *)aggregator)->live, addr);
}

void block_prefetch(const struct aggregator *a, uint64_t addr)
{
	struct live_block b;

	if (a->cull && live_find(a->live, addr, &b) && b.stack & LIVE_IS_HELD)
		cull_prefetch(a->cull, b.stack & ~LIVE_IS_HELD);
}

/* Adds @ev to culling.  Return: the number of its block. */
static uint32_t hold(struct aggregator *a, const struct mp_event *ev,
		     const struct cull_realloc *resized)
{
	uint32_t number = CULL_NONE;
	int ret = resized ? cull_resized(a->cull, resized, ev, &number)
			  : cull_begin(a->cull, ev, &number);

	if (ret)
		a->now.error = ret;
	return ret ? CULL_NONE : number;
}

void block_born(struct aggregator *a, const struct mp_event *ev, const struct cull_realloc *resized)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, entry = b, old;
	struct origin origin = origin_of(ev);
	uint32_t held = CULL_NONE;
	int ret;

	overtaken_free(a, ev->addr);
	if (a->cull)
		held = hold(a, ev, resized);
	entry.stack = held | LIVE_IS_HELD;
	ret = held == CULL_NONE ? block_put(a, &b, &origin, &old) : put_entry(a, &entry, &old);
	if (ret) {
		a->losses.queue_events++;
		a->losses.queue_alloc++;
		if (held != CULL_NONE)
			cull_forget(a->cull, held);
		return;
	}
	if (old.addr)
		block_replaced(a, &old);
	/* The next free of the address could be that of either block. */
	if (old.addr && held != CULL_NONE) {
		cull_forget(a->cull, held);
		block_let_go(a, ev);
	}
	block_account(a, &b, BLOCK_BEGINS);
}

bool block_born_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		      const struct mp_event *ev)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, old;

	if (order_can_end(a->order, ev->addr, (uint32_t)(st - a->slot)) ||
	    live_find(a->live, ev->addr, &old))
		return false;
	if (!st->short_stack)
		st->short_stack = calloc(ORDER_NUMBERS, sizeof(*st->short_stack));
	if (!st->short_stack)
		return false;
	st->short_stack[number] = ev->stack + 1;
	block_account(a, &b, BLOCK_BEGINS);
	return true;
}

bool block_pair(struct aggregator *a, const struct slot_state *st, const struct mp_event *ev)
{
	uint64_t blocks = 1ull << ev->weight;
	struct live_block old;

	if (order_can_end(a->order, ev->addr, (uint32_t)(st - a->slot)) ||
	    live_find(a->live, ev->addr, &old))
		return false;
	if (levels_pair(&a->levels, &(struct level_change){.time_ns = a->last_ns,
							   .bytes = ev->size << ev->weight,
							   .blocks = blocks,
							   .stack = ev->stack}))
		a->now.error = -ENOMEM;
	a->now.frees += blocks;
	return true;
}

bool block_end_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		     const struct mpr_alloc *r, uint32_t *stack)
{
	struct live_block b = {.addr = r->addr_hook & MPR_ADDR_MASK,
			       .size = r->size,
			       .weight = mpr_weight(r->addr_hook, r->size)};

	if (!st->short_stack || !st->short_stack[number])
		return false;
	*stack = b.stack = st->short_stack[number] - 1;
	st->short_stack[number] = 0;
	block_ended(a, &b);
	return true;
}

bool block_end(struct aggregator *a, uint64_t addr, struct known_block *b)
{
	return block_take(a, addr, b) || (overtaken_alloc(a, addr) && block_take(a, addr, b));
}

bool block_gone(struct aggregator *a, uint64_t addr, bool own_free, struct known_block *b)
{
	if (own_free ? block_take(a, addr, b) : block_end(a, addr, b))
		return true;
	if (aggregator_selects(a))
		a->losses.left_out_frees++;
	else if (own_free)
		a->losses.housekeeping_frees++;
	else
		a->losses.foreign_frees++;
	return false;
}

void drop_realloc(struct aggregator *a, struct slot_state *st)
{
	if (st->in_realloc && st->realloc_known)
		block_ended(a, &st->realloc_block);
	st->in_realloc = false;
}
