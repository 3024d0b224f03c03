/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/carry_in.h"

#include <stdlib.h>
#include "record/aggregator.h"
#include "record/blocks.h"
#include "record/stacks/stack_ids.h"

static uint32_t *put_stacks(struct aggregator *a, const struct carry *c)
{
	uint32_t *id = calloc(c->stacks.n + 1, sizeof(*id)), cleared = 0;
	const uint64_t pc = CARRY_CLEARED_PC;
	const struct mp_symbol name = {.function = CARRY_CLEARED, .raw_function = CARRY_CLEARED};

	for (size_t i = 1; id && i < c->stacks.n; i++) {
		const struct carried_stack *s = &c->stacks.at[i];

		if (!s->blocks)
			continue;
		if (!s->cleared) {
			id[i] = stack_add(a, c->pc.at + s->first, s->n, s->flags);
			continue;
		}
		if (!cleared) {
			cleared = stack_add(a, &pc, 1, 0);
			mpf_put_symbols(a->file, pc, &name, 1);
		}
		id[i] = cleared;
	}
	return id;
}

static struct slot_state *slot_of(struct aggregator *a, uint32_t tid)
{
	for (uint32_t i = 0; i < a->layout->nslots; i++) {
		if (slot_at(a->layout, i)->tp && slot_at(a->layout, i)->tid == tid)
			return &a->slot[i];
	}
	return NULL;
}

static void put_realloc_begin(struct aggregator *a, uint32_t tid, const struct carried_block *b,
			      const struct live_block *live, const struct origin *origin)
{
	struct slot_state *st = slot_of(a, tid);
	struct mp_event ev = {
	    .kind = EV_REALLOC_BEGIN, .flags = EV_F_CARRIED, .tid = tid, .fd = -1};

	if (!st)
		return;
	st->tid = tid;
	st->in_realloc = true;
	st->realloc_known = live != NULL;
	st->realloc_held.node = CULL_NONE;
	if (live) {
		st->realloc_block = *live;
		st->realloc_origin = *origin;
	}
	if (b) {
		ev.addr = b->addr;
		ev.hook = b->hook;
	}
	a->piece.head_events++;
	a->now.error = mpf_put_event(a->file, &ev);
}

static void put_block(struct aggregator *a, const struct carried_block *b, uint32_t stack)
{
	struct live_block live = {b->addr, b->size, stack, b->weight}, old;
	struct origin origin = {.stack = stack,
				.tid = b->tid,
				.slack = (uint32_t)(b->usable - b->size),
				.hook = b->hook,
				.flags = b->flags};
	struct mp_event ev = {.kind = EV_ALLOC,
			      .flags = b->flags | EV_F_CARRIED,
			      .addr = b->addr,
			      .size = b->size,
			      .usable = b->usable,
			      .stack = stack,
			      .tid = b->tid,
			      .hook = b->hook,
			      .weight = b->weight,
			      .fd = -1};

	a->piece.head_events++;
	a->now.error = mpf_put_event(a->file, &ev);
	aggregator_moves(a);
	block_account(a, &live, BLOCK_IS_CARRIED);
	if (b->in_realloc)
		put_realloc_begin(a, b->realloc_tid, b, &live, &origin);
	else
		block_put(a, &live, &origin, &old);
}

void carry_in(struct aggregator *a, const struct carry *c)
{
	uint32_t *id = put_stacks(a, c);

	vec_for_each (&c->modules, m)
		mpf_put_module(a->file, m);
	vec_for_each (&c->blocks, b)
		put_block(a, b, id ? id[b->stack] : 0);
	vec_for_each (&c->foreign_reallocs, tid)
		put_realloc_begin(a, *tid, NULL, NULL, NULL);
	free(id);
	mpf_flush(a->file);
}
