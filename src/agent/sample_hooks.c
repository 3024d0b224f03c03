/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hook bodies of the heap in sampling mode.  malloc and calloc of an allocator that is known to
 * call no other hooked function reach them only when they are sampled, or when their thread has no
 * countdown in the private pages yet; frees only if the filter does not exclude that the block is
 * sampled.  All other calls always reach them.  The rules of hooks.c apply; mappings have their
 * usual bodies.
 */
#include "agent/call.h"
#include "agent/countdown.h"
#include "agent/sample.h"

void ag_sample_free(ag_word_t block, const struct ss_desc *desc, ag_word_t return_address);

/* As ag_begin().  @chosen: set to whether this request of @size bytes is sampled. */
static bool begin_counted(struct ag_call *call, const struct ag_frame *f, uint64_t size,
			  bool *chosen)
{
	if (unlikely(!ag_begin(call, f, false)))
		return false;
	call->sampler = ag_sampler_enter(call->c, call->t);
	*chosen = ag_countdown_passes(call->sampler, size, call->c->sample_interval);
	return true;
}

static void end_counted(const struct ag_call *call)
{
	if (!call->level)
		ag_sampler_leave(call->t, call->sampler);
	ag_end(call);
}

static void put_sampled(const struct ag_call *call, uint64_t block, uint64_t size)
{
	if (!ag_sampled_add(call->c, block))
		ag_lost(call, MPR_LOST_ALLOC, size);
	else if (!ag_put_alloc(call, block, size))
		ag_sampled_take(call->c, block);
}

AG_HOOK(ag_sample_alloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct ag_call call;
	bool chosen;

	if (unlikely(!begin_counted(&call, f, size, &chosen)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (chosen && block)
		put_sampled(&call, block, size);
	end_counted(&call);
	return block;
}

/* As ag_alloc_throw(). */
AG_HOOK(ag_sample_alloc_throw)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct ag_call call;
	bool chosen;

	if (unlikely(!begin_counted(&call, f, size, &chosen)))
		return 0;
	block = AG_SIBLING(f)(a0, a1, a2, a3, a4);
	if (chosen && block)
		put_sampled(&call, block, size);
	else if (chosen)
		__atomic_fetch_add(&call.c->missed_new, 1, __ATOMIC_RELAXED);
	end_counted(&call);
	return block;
}

AG_HOOK(ag_sample_posix_memalign)
{
	struct ag_call call;
	ag_word_t ret;
	bool chosen;

	if (unlikely(!begin_counted(&call, f, a2, &chosen)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (chosen && (int)ret == 0 && *(const ag_word_t *)a0)
		put_sampled(&call, *(const ag_word_t *)a0, a2);
	end_counted(&call);
	return ret;
}

/* After REALLOC_BEGIN of a sampled block: @old became @block, or remains (@block 0 and not
 * @gone). */
static void put_resized(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			bool chosen, bool gone)
{
	bool kept = block && chosen && ag_sampled_add(call->c, block);

	if (!block && !gone)
		ag_sampled_add(call->c, old);
	/* A new block that is not sampled ends the old block's history like a free. */
	ag_put_realloc_end(call, old, kept ? block : 0, size, !kept && (block || gone));
}

AG_HOOK(ag_sample_realloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	bool chosen, known, begun;
	struct ag_call call;

	if (unlikely(!begin_counted(&call, f, size, &chosen)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Before another thread can get the old address. */
	known = a0 && ag_sampled_take(call.c, a0);
	begun = known && ag_put_realloc_begin(&call, a0);
	block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (begun)
		put_resized(&call, a0, block, size, chosen, !size);
	else if (chosen && block)
		put_sampled(&call, block, size);
	end_counted(&call);
	return block;
}

AG_HOOK(ag_sample_xallocx)
{
	struct ag_call call;
	uint64_t size;
	bool chosen;

	if (unlikely(!begin_counted(&call, f, a1, &chosen)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	size = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (size < a1) /* not granted: nothing changed */
		;
	else if (ag_sampled_take(call.c, a0) && ag_put_realloc_begin(&call, a0))
		put_resized(&call, a0, a0, a1, chosen, false);
	else if (chosen)
		put_sampled(&call, a0, a1);
	end_counted(&call);
	return size;
}

/* Walks no stack and does not use the cached walks, so it is safe in any state of the thread. */
void ag_sample_free(ag_word_t block, const struct ss_desc *d, ag_word_t return_address)
{
	struct ss_control *c = ag_control();
	struct ag_thread *t;
	uint64_t now;

	if (!block || !ag_sampled_take(c, block))
		return;
	t = ag_thread_slot(c);
	if (unlikely(!t)) {
		ag_count_no_slot_free(c);
		return;
	}
	now = ag_ticks_of_end();
	if (unlikely(now > c->deadline))
		t->s.stale[MPR_LOST_FREE]++;
	else if (unlikely(
		     !ag_put_free(c, t, MPR_FREE, now, d, block, ag_free_misc(d, return_address))))
		t->s.lost[MPR_LOST_FREE]++;
}
