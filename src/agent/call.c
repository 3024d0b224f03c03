/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "agent/call.h"

bool ag_begin_nested(struct ag_call *call, bool inner_too)
{
	struct ag_thread *t = call->t;
	enum ag_nesting nesting;

	if (call->level >= AG_LEVELS)
		return false;
	nesting = ag_stack_nesting(call);
	if (nesting == AG_INNER && !inner_too)
		return false;
	call->inner = nesting == AG_INNER;
	if (nesting == AG_FRESH) {
		call->level = 0;
		t->s.resets++;
	}
	return true;
}

/*
 * Copies @bytes of the stack from @sp upwards to the ring's position @at, or as many as are mapped.
 * Only the main thread's stack is known to be mapped.  The kernel copies other stacks, because
 * another thread can unmap the memory after the stack at any moment.  If system calls are not
 * permitted, only the page of @sp is certain to be readable.
 * Return: bytes copied, a multiple of 8.
 */
static uint32_t copy_stack(const struct ag_call *call, uint64_t at, uint64_t sp, uint32_t bytes)
{
	long copied = -1;

	if (!ag_on_main_stack(call->c, sp)) {
		if (call->c->may_syscall & SS_MAY_COPY)
			copied = ag_ring_copy(call->c, call->t, at, sp, bytes);
		if (copied > 0)
			return (uint32_t)copied & ~7u;
		if (bytes > AG_PAGE - sp % AG_PAGE)
			bytes = (uint32_t)(AG_PAGE - sp % AG_PAGE);
	}
	bytes &= ~7u;
	ag_ring_write(call->c, call->t, at, (const uint64_t *)(uintptr_t)sp, bytes / 8);
	return bytes;
}

uint32_t ag_put_raw_stack(const struct ag_call *call, uint64_t now)
{
	struct ag_thread *t = call->t;
	struct mpr_raw_stack rec;
	struct uw_state *s = &t->state[call->level][0];
	uint64_t position, sp = ag_frame_sp(call->f), room = ag_stack_limit(call->c, t, sp) - sp;
	uint32_t most = room < AG_RING_COPY_MAX ? (uint32_t)room : AG_RING_COPY_MAX;

	ag_frame_state(call->f, call->f->desc->function_addr, s);
	rec.time = now;
	rec.sequence = ++t->s.raw_sequence & ~MPR_STACK_RAW;
	rec.reg_valid = s->valid;
	for (uint32_t i = 0; i < UW_MAX_REGS; i++)
		rec.regs[i] = s->valid >> i & 1 ? s->reg[i] : 0;
	/* Repeated if a signal handler has written its own records in the meantime. */
	for (int i = 0; i < AG_RING_TRIES; i++) {
		if (!ag_ring_at(call->c, t, sizeof(rec) + most, ag_ring_limit(call->c, false),
				&position))
			break;
		rec.bytes = copy_stack(call, position + sizeof(rec), sp, most);
		rec.h = (struct mpr_header){MPR_RAW_STACK, 0, (uint16_t)(sizeof(rec) + rec.bytes)};
		ag_ring_write(call->c, t, position, (uint64_t *)&rec, sizeof(rec) / 8);
		if (ag_ring_publish(call->c, t, position, rec.h.size)) {
			t->s.written[MPR_LOST_OTHER]++;
			return rec.sequence | MPR_STACK_RAW;
		}
	}
	return MPR_STACK_NONE;
}

bool ag_put_alloc_big(const struct ag_call *call, uint64_t now, uint64_t block, uint64_t size,
		      uint32_t stack, uint16_t misc)
{
	struct mpr_alloc_big rec = {{MPR_ALLOC_BIG, misc, sizeof(rec)},
				    now,
				    ag_addr_hook(call->f->desc, block),
				    size,
				    stack,
				    0};

	if (ag_ring_put(call->c, call->t, &rec, ag_ring_limit(call->c, false)))
		return true;
	ag_lost(call, MPR_LOST_ALLOC, size);
	return false;
}

/* What became of a block that was reallocated. */
struct resized {
	uint64_t old, block, size;
	bool released;
	uint16_t skipped; /* ag_skipped() before the new block was weighed */
	uint32_t k;	  /* of the new block, or AG_THINNED_OUT */
};

static void put_realloc_end(const struct ag_call *call, uint64_t now, const struct resized *r)
{
	const struct ss_desc *d = call->f->desc;
	struct mpr_realloc rec = {{MPR_REALLOC_END, 0, sizeof(rec)},
				  now,
				  r->old & MPR_ADDR_MASK,
				  ag_addr_hook(d, r->block),
				  r->size,
				  MPR_STACK_NONE,
				  r->released};

	if (r->block && r->k == AG_THINNED_OUT) {
		/* The old block ends as if it had been freed. */
		rec.addr_hook = ag_addr_hook(d, 0);
		rec.freed = 1;
	} else if (r->block) {
		rec.addr_hook |= ag_weight(r->k);
		rec.stack = ag_take_stack(call, now);
		rec.h.misc = ag_block_misc(d, r->block, r->size);
	}
	rec.h.misc |= r->skipped;
	if (!ag_ring_put(call->c, call->t, &rec, ag_ring_limit(call->c, true)))
		ag_lost(call, MPR_LOST_REALLOC, r->size);
}

void ag_put_realloc_end(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			bool released)
{
	uint64_t now = ag_ticks();
	struct resized r = {old, block, size, released, ag_skipped(call->t), 0};

	if (block)
		r.k = ag_thin(call, now, block, size);
	put_realloc_end(call, now, &r);
}

void ag_put_weighted_realloc_end(const struct ag_call *call, uint64_t old, uint64_t block,
				 uint64_t size, bool released, uint32_t k)
{
	struct resized r = {old, block, size, released, ag_skipped(call->t), k};

	put_realloc_end(call, ag_ticks(), &r);
}

bool ag_put_realloc_begin(const struct ag_call *call, uint64_t old)
{
	uint64_t now = ag_ticks_of_end();

	if (!ag_recorder_alive(call, now, MPR_LOST_REALLOC))
		return false;
	ag_ring_forget(call->c, call->t, old);
	if (ag_put_free(call->c, call->t, MPR_REALLOC_BEGIN, now, call->f->desc, old, 0))
		return true;
	ag_lost(call, MPR_LOST_REALLOC, 0);
	return false;
}

void ag_realloc_thinned(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			bool released)
{
	if (block)
		ag_put_alloc(call, block, size);
	else if (!released)
		ag_sampled_add(call->c, old);
}
