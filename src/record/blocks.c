/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/blocks.h"

#include <stdlib.h>
#include "lib/estimate.h"
#include "record/aggregator.h"
#include "record/overtaken.h"

void block_account(struct aggregator *a, const struct live_block *b, int sign)
{
	struct stack *s = &a->stacks.at[b->stack];
	struct estimate e = estimate_block(a->config->info.sample_interval, b->size, b->weight,
					   b->addr ^ b->size << 48 ^ b->stack);

	a->now.live_bytes += (uint64_t)sign * e.bytes;
	a->now.live_blocks += (uint64_t)sign * e.blocks;
	/* Unsigned, because a malicious target's sizes can overflow the sum. */
	s->live_bytes = (int64_t)((uint64_t)s->live_bytes + (uint64_t)sign * e.bytes);
	s->live_blocks = (int64_t)((uint64_t)s->live_blocks + (uint64_t)sign * e.blocks);
	if (sign > 0 && a->now.live_bytes > a->peak_bytes) {
		a->peak_bytes = a->now.live_bytes;
		a->peak_blocks = a->now.live_blocks;
		a->peak_time_ns = a->last_ns;
	}
}

void block_ended(struct aggregator *a, const struct live_block *b)
{
	block_account(a, b, -1);
	a->now.frees += 1ull << b->weight;
}

int block_put(struct aggregator *a, const struct live_block *b, const struct origin *origin,
	      struct live_block *old)
{
	struct live_block entry = *b;

	if (a->origins && origins_add(a->origins, origin, &entry.stack))
		return -ENOMEM;
	if (live_put(a->live, &entry, old))
		return -ENOMEM;
	if (a->origins && old->addr)
		old->stack = origins_take(a->origins, old->stack).stack;
	return 0;
}

bool block_take(struct aggregator *a, uint64_t addr, struct live_block *b, struct origin *origin)
{
	struct origin from;

	if (!live_take(a->live, addr, b))
		return false;
	if (!a->origins)
		return true;
	from = origins_take(a->origins, b->stack);
	b->stack = from.stack;
	if (origin)
		*origin = from;
	return true;
}

void block_replaced(struct aggregator *a, const struct live_block *old)
{
	block_ended(a, old);
	a->replaced = true;
	a->losses.mismatches++;
}

void block_born(struct aggregator *a, const struct mp_event *ev)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, old;
	struct origin origin = {.stack = ev->stack,
				.tid = ev->tid,
				.slack = (uint32_t)(ev->usable - ev->size),
				.hook = ev->hook,
				.flags = ev->flags & (EV_F_NON_MAIN | EV_F_MMAPPED)};

	overtaken_free(a, ev->addr);
	if (block_put(a, &b, &origin, &old)) {
		a->losses.queue_events++;
		a->losses.queue_alloc++;
		return;
	}
	if (old.addr)
		block_replaced(a, &old);
	block_account(a, &b, 1);
}

bool block_born_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		      const struct mp_event *ev)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, old;

	if (order_can_end(&a->order, ev->addr, (uint32_t)(st - a->slot)) ||
	    live_find(a->live, ev->addr, &old))
		return false;
	if (!st->short_stack)
		st->short_stack = calloc(ORDER_NUMBERS, sizeof(*st->short_stack));
	if (!st->short_stack)
		return false;
	st->short_stack[number] = ev->stack + 1;
	block_account(a, &b, 1);
	return true;
}

bool block_end_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		     const struct mpr_alloc *r)
{
	struct live_block b = {.addr = r->addr_hook & MPR_ADDR_MASK,
			       .size = r->size,
			       .weight = mpr_weight(r->addr_hook, r->size)};

	if (!st->short_stack || !st->short_stack[number])
		return false;
	b.stack = st->short_stack[number] - 1;
	st->short_stack[number] = 0;
	block_ended(a, &b);
	return true;
}

bool block_end(struct aggregator *a, uint64_t addr, struct live_block *b, struct origin *origin)
{
	return block_take(a, addr, b, origin) ||
	       (overtaken_alloc(a, addr) && block_take(a, addr, b, origin));
}

bool block_gone(struct aggregator *a, uint64_t addr, bool own_free, struct live_block *b)
{
	if (own_free ? block_take(a, addr, b, NULL) : block_end(a, addr, b, NULL))
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
