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

/* A call in sampling mode. */
struct counted {
	struct ag_call call;
	uint64_t since; /* ag_timer_begin() */
	uint32_t k;	/* ag_sampler_choose() */
};

/* As ag_begin(); chooses whether this request of @size bytes is sampled. */
static bool begin_counted(struct counted *n, const struct ag_frame *f, uint64_t size)
{
	struct ag_call *call = &n->call;

	if (unlikely(!ag_begin(call, f, false)))
		return false;
	n->since = ag_timer_begin(call->c, call->t);
	call->sampler = ag_sampler_enter(call->c, call->t);
	n->k = ag_sampler_choose(call, size);
	return true;
}

static bool is_chosen(const struct counted *n)
{
	return n->k != AG_NOT_CHOSEN;
}

static inline __attribute__((always_inline)) ag_word_t
call_original(struct counted *n, ag_original_fn *original, ag_word_t a0, ag_word_t a1, ag_word_t a2,
	      ag_word_t a3, ag_word_t a4)
{
	ag_word_t ret;

	ag_timer_pause(n->call.c, n->call.t, n->since, is_chosen(n));
	ret = original(a0, a1, a2, a3, a4);
	n->since = ag_timer_continue(n->since);
	return ret;
}

static void end_counted(const struct counted *n)
{
	const struct ag_call *call = &n->call;

	call->t->thinning.skipped = call->c->overhead_ppm && !is_chosen(n);
	if (!call->level)
		ag_sampler_leave(call->t, call->sampler);
	ag_timer_pause(call->c, call->t, n->since, is_chosen(n));
	ag_end(call);
}

static void put_sampled(const struct counted *n, uint64_t block, uint64_t size)
{
	const struct ag_call *call = &n->call;
	uint64_t now = ag_ticks();

	if (!ag_recorder_alive(call, now, MPR_LOST_ALLOC))
		return;
	if (!ag_sampled_add(call->c, block))
		ag_lost_alloc(call, n->k, size);
	else if (!ag_put_weighted_alloc(call, now, block, size, n->k))
		ag_sampled_take(call->c, block);
}

AG_HOOK(ag_sample_alloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct counted n;

	if (unlikely(!begin_counted(&n, f, size)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = call_original(&n, AG_ORIGINAL(f), a0, a1, a2, a3, a4);
	if (is_chosen(&n) && block)
		put_sampled(&n, block, size);
	end_counted(&n);
	return block;
}

/* As ag_alloc_throw(). */
AG_HOOK(ag_sample_alloc_throw)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct counted n;

	if (unlikely(!begin_counted(&n, f, size)))
		return 0;
	block = call_original(&n, AG_SIBLING(f), a0, a1, a2, a3, a4);
	if (is_chosen(&n) && block)
		put_sampled(&n, block, size);
	else if (is_chosen(&n))
		__atomic_fetch_add(&n.call.c->missed_new, 1, __ATOMIC_RELAXED);
	end_counted(&n);
	return block;
}

AG_HOOK(ag_sample_posix_memalign)
{
	struct counted n;
	ag_word_t ret;

	if (unlikely(!begin_counted(&n, f, a2)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = call_original(&n, AG_ORIGINAL(f), a0, a1, a2, a3, a4);
	if (is_chosen(&n) && (int)ret == 0 && *(const ag_word_t *)a0)
		put_sampled(&n, *(const ag_word_t *)a0, a2);
	end_counted(&n);
	return ret;
}

/* After REALLOC_BEGIN of a sampled block: @old became @block, or remains (@block 0 and not
 * @gone). */
static void put_resized(const struct counted *n, uint64_t old, uint64_t block, uint64_t size,
			bool gone)
{
	const struct ag_call *call = &n->call;
	bool wanted = block && is_chosen(n), kept = wanted && ag_sampled_add(call->c, block);

	if (wanted && !kept)
		ag_lost_alloc(call, n->k, size);
	if (!block && !gone)
		ag_sampled_add(call->c, old);
	/* A new block that is not sampled ends the old block's history like a free. */
	ag_put_weighted_realloc_end(call, old, kept ? block : 0, size, !kept && (block || gone),
				    n->k);
}

AG_HOOK(ag_sample_realloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	bool known, begun;
	struct counted n;

	if (unlikely(!begin_counted(&n, f, size)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Before another thread can get the old address. */
	known = a0 && ag_sampled_take(n.call.c, a0);
	begun = known && ag_put_realloc_begin(&n.call, a0);
	block = call_original(&n, AG_ORIGINAL(f), a0, a1, a2, a3, a4);
	if (begun)
		put_resized(&n, a0, block, size, !size);
	else if (is_chosen(&n) && block)
		put_sampled(&n, block, size);
	end_counted(&n);
	return block;
}

AG_HOOK(ag_sample_xallocx)
{
	struct counted n;
	uint64_t size;

	if (unlikely(!begin_counted(&n, f, a1)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	size = call_original(&n, AG_ORIGINAL(f), a0, a1, a2, a3, a4);
	if (size < a1) /* not granted: nothing changed */
		;
	else if (ag_sampled_take(n.call.c, a0) && ag_put_realloc_begin(&n.call, a0))
		put_resized(&n, a0, a0, a1, false);
	else if (is_chosen(&n))
		put_sampled(&n, a0, a1);
	end_counted(&n);
	return size;
}

/* Walks no stack and does not use the cached walks, so it is safe in any state of the thread. */
void ag_sample_free(ag_word_t block, const struct ss_desc *d, ag_word_t return_address)
{
	struct ss_control *c = ag_control();
	struct ag_thread *t;
	uint64_t now, since;

	if (!block || !ag_sampled_take(c, block))
		return;
	t = ag_thread_slot(c);
	if (unlikely(!t)) {
		ag_count_no_slot_free(c);
		return;
	}
	since = ag_timer_begin(c, t);
	if (c->overhead_ppm)
		ag_sampler_note_skipped(t, ag_sampler_of(t));
	now = ag_ticks_of_end();
	if (unlikely(now > c->deadline))
		t->s.stale[MPR_LOST_FREE]++;
	else if (unlikely(
		     !ag_put_free(c, t, MPR_FREE, now, d, block, ag_free_misc(d, return_address))))
		t->s.lost[MPR_LOST_FREE]++;
	ag_timer_pause(c, t, since, true);
}
