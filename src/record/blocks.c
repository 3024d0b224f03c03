/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maintains the live table and the sums of live memory. */
#include "lib/estimate.h"
#include "record/internal.h"

void block_account(struct recorder *r, const struct live_block *b, int sign)
{
	struct stack *s = &r->stacks.at[b->stack];
	struct estimate e = estimate_block(r->config.info.sample_interval, b->size,
					   b->addr ^ b->size << 48 ^ b->stack);

	r->now.live_bytes += (uint64_t)sign * e.bytes;
	r->now.live_blocks += (uint64_t)sign * e.blocks;
	/* Unsigned, because a malicious target's sizes can overflow the sum. */
	s->live_bytes = (int64_t)((uint64_t)s->live_bytes + (uint64_t)sign * e.bytes);
	s->live_blocks = (int64_t)((uint64_t)s->live_blocks + (uint64_t)sign * e.blocks);
	if (sign > 0 && r->now.live_bytes > r->peak_bytes) {
		r->peak_bytes = r->now.live_bytes;
		r->peak_blocks = r->now.live_blocks;
		r->peak_time_ns = r->last_ns;
	}
}

int block_put(struct recorder *r, const struct live_block *b, const struct origin *origin,
	      struct live_block *old)
{
	struct live_block entry = *b;

	if (r->origins && origins_add(r->origins, origin, &entry.stack))
		return -ENOMEM;
	if (live_put(r->live, &entry, old))
		return -ENOMEM;
	if (r->origins && old->addr)
		old->stack = origins_take(r->origins, old->stack).stack;
	return 0;
}

bool block_take(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin)
{
	struct origin from;

	if (!live_take(r->live, addr, b))
		return false;
	if (!r->origins)
		return true;
	from = origins_take(r->origins, b->stack);
	b->stack = from.stack;
	if (origin)
		*origin = from;
	return true;
}

void block_replaced(struct recorder *r, const struct live_block *old)
{
	block_account(r, old, -1);
	r->replaced = true;
	r->now.frees++;
	r->losses.mismatches++;
}

void block_born(struct recorder *r, const struct mp_event *ev)
{
	struct live_block b = {ev->addr, ev->size, ev->stack}, old;
	struct origin origin = {.stack = ev->stack,
				.tid = ev->tid,
				.slack = (uint32_t)(ev->usable - ev->size),
				.hook = ev->hook,
				.flags = ev->flags};

	overtaken_free(r, ev->addr);
	if (block_put(r, &b, &origin, &old)) {
		r->losses.queue_events++;
		r->losses.queue_alloc++;
		return;
	}
	if (old.addr)
		block_replaced(r, &old);
	block_account(r, &b, 1);
}

bool block_end(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin)
{
	return block_take(r, addr, b, origin) ||
	       (overtaken_alloc(r, addr) && block_take(r, addr, b, origin));
}

bool block_gone(struct recorder *r, uint64_t addr, bool own_free, struct live_block *b)
{
	if (own_free ? block_take(r, addr, b, NULL) : block_end(r, addr, b, NULL))
		return true;
	if (r->selects)
		r->losses.left_out_frees++;
	else if (own_free)
		r->losses.housekeeping_frees++;
	else
		r->losses.foreign_frees++;
	return false;
}

void drop_realloc(struct recorder *r, struct slot_state *st)
{
	if (st->in_realloc && st->realloc_known) {
		block_account(r, &st->realloc_block, -1);
		r->now.frees++;
	}
	st->in_realloc = false;
}
