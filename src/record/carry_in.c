/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the state taken over from the previous recorder at the head of the new recording. */
#include <errno.h>
#include <stdlib.h>
#include "record/internal.h"

static uint32_t *put_stacks(struct recorder *r, const struct carry *c)
{
	uint32_t *id = calloc(c->stacks.n + 1, sizeof(*id)), cleared = 0;
	const uint64_t pc = CARRY_CLEARED_PC;
	const struct mp_symbol name = {.function = CARRY_CLEARED, .raw_function = CARRY_CLEARED};

	for (size_t i = 1; id && i < c->stacks.n; i++) {
		const struct carried_stack *s = &c->stacks.at[i];

		if (!s->blocks)
			continue;
		if (!s->cleared) {
			id[i] = stack_add(r, c->pc.at + s->first, s->n, s->flags);
			continue;
		}
		if (!cleared) {
			cleared = stack_add(r, &pc, 1, 0);
			mpf_put_symbols(r->file, pc, &name, 1);
		}
		id[i] = cleared;
	}
	return id;
}

static struct slot_state *slot_of(struct recorder *r, uint32_t tid)
{
	for (uint32_t i = 0; i < r->nslots; i++) {
		if (slot_at(r, i)->tp && slot_at(r, i)->tid == tid)
			return &r->slot[i];
	}
	return NULL;
}

static void put_realloc_begin(struct recorder *r, uint32_t tid, const struct carried_block *b,
			      const struct live_block *live, const struct origin *origin)
{
	struct slot_state *st = slot_of(r, tid);
	struct mp_event ev = {
	    .kind = EV_REALLOC_BEGIN, .flags = EV_F_CARRIED, .tid = tid, .fd = -1};

	if (!st)
		return;
	st->tid = tid;
	st->in_realloc = true;
	st->realloc_known = live != NULL;
	if (live) {
		st->realloc_block = *live;
		st->realloc_origin = *origin;
	}
	if (b) {
		ev.addr = b->addr;
		ev.hook = b->hook;
	}
	r->piece.head_events++;
	r->now.error = mpf_put_event(r->file, &ev);
}

static void put_block(struct recorder *r, const struct carried_block *b, uint32_t stack)
{
	struct live_block live = {b->addr, b->size, stack}, old;
	struct origin origin = {stack, b->tid, (uint32_t)(b->usable - b->size), b->hook, b->flags};
	struct mp_event ev = {.kind = EV_ALLOC,
			      .flags = b->flags | EV_F_CARRIED,
			      .addr = b->addr,
			      .size = b->size,
			      .usable = b->usable,
			      .stack = stack,
			      .tid = b->tid,
			      .hook = b->hook,
			      .fd = -1};

	r->piece.head_events++;
	r->now.error = mpf_put_event(r->file, &ev);
	aggregator_moves(r);
	block_account(r, &live, 1);
	if (b->in_realloc)
		put_realloc_begin(r, b->realloc_tid, b, &live, &origin);
	else
		block_put(r, &live, &origin, &old);
}

void carry_in(struct recorder *r, const struct carry *c)
{
	uint32_t *id = put_stacks(r, c);

	vec_for_each (&c->modules, m)
		mpf_put_module(r->file, m);
	vec_for_each (&c->blocks, b)
		put_block(r, b, id ? id[b->stack] : 0);
	vec_for_each (&c->foreign_reallocs, tid)
		put_realloc_begin(r, *tid, NULL, NULL, NULL);
	free(id);
	mpf_flush(r->file);
}
