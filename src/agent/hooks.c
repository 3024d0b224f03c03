/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hook bodies of the heap, entered from arch/<name>/agent-entry.S with the gate open.
 *
 * The order of records and real calls keeps the history of every address right: the end of a block
 * is recorded before the real call, its beginning after it.  No exception is thrown through these
 * frames.  A call that a signal handler leaves by longjmp does no damage: the depth and the ring's
 * writers are repaired at the thread's next call (ag_begin()).
 */
#include "agent/call.h"

bool ag_free(ag_word_t block, const struct ss_desc *desc, ag_word_t return_address);
void ag_free_nested(ag_word_t block, const struct ag_frame *f);

AG_HOOK(ag_alloc)
{
	struct ag_call call;
	ag_word_t block;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (likely(block))
		ag_put_alloc(&call, block, ag_requested(f->desc, a0, a1, a2));
	ag_end(&call);
	return block;
}

/* Return: the block, or 0: the original must be entered without a frame of the agent. */
AG_HOOK(ag_alloc_throw)
{
	struct ag_call call;
	ag_word_t block;

	if (unlikely(!ag_begin(&call, f, false)))
		return 0;
	/* The sibling never reads its nothrow_t reference. */
	block = AG_SIBLING(f)(a0, a1, a2, a3, a4);
	if (likely(block))
		ag_put_alloc(&call, block, ag_requested(f->desc, a0, a1, a2));
	else
		__atomic_fetch_add(&call.c->missed_new, 1, __ATOMIC_RELAXED);
	ag_end(&call);
	return block;
}

AG_HOOK(ag_posix_memalign)
{
	struct ag_call call;
	ag_word_t ret;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if ((int)ret == 0 && *(const ag_word_t *)a0)
		ag_put_alloc(&call, *(const ag_word_t *)a0, a2);
	ag_end(&call);
	return ret;
}

static inline __attribute__((always_inline)) void free_begins(struct ss_account *account)
{
	account->outer_sp = (uintptr_t)__builtin_frame_address(0);
	account->depth = 1;
	barrier();
}

/*
 * The end of a block gets a record of its own.  This function and free_in_new_thread() are out of
 * line, so that ag_free() saves no registers.
 */
static __attribute__((noinline)) bool put_free(struct ss_control *c, struct ag_thread *t,
					       ag_word_t block, const struct ss_desc *d,
					       uint16_t misc)
{
	uint64_t now = ag_ticks_of_end();

	if (unlikely(now > c->deadline))
		t->s.stale[MPR_LOST_FREE]++;
	else if (unlikely(!ag_put_free(c, t, MPR_FREE, now, d, block, misc)))
		t->s.lost[MPR_LOST_FREE]++;
	barrier();
	ag_account_of(t)->depth = 0;
	return false;
}

static __attribute__((noinline)) bool free_in_new_thread(ag_word_t block, const struct ss_desc *d,
							 ag_word_t return_address)
{
	struct ss_control *c = ag_control();
	struct ag_thread *t = ag_thread_slot_find(c, ag_thread_pointer());
	struct ss_account *account;

	if (!t) {
		ag_count_no_slot_free(c);
		return false;
	}
	account = ag_account_of(t);
	if (account->depth)
		return true;
	free_begins(account);
	return put_free(c, t, block, d, ag_free_misc(d, return_address));
}

/* ag_free() once blocks were thinned out. */
static __attribute__((noinline)) bool free_while_thinned(ag_word_t block, const struct ss_desc *d,
							 ag_word_t return_address)
{
	struct ss_control *c = ag_control();
	struct ag_thread *t = ag_thread_slot_known(c);
	uint16_t misc = ag_free_misc(d, return_address);

	if (ag_thinned_take(c, block))
		return false;
	if (!t)
		return free_in_new_thread(block, d, return_address);
	if (ag_account_of(t)->depth)
		return true;
	free_begins(ag_account_of(t));
	if (misc || t->thinning.skipped || !ag_ring_end_block(c, t, block, d->hook))
		return put_free(c, t, block, d, misc);
	barrier();
	ag_account_of(t)->depth = 0;
	return false;
}

bool ag_free(ag_word_t block, const struct ss_desc *d, ag_word_t return_address)
{
	struct ss_control *c = ag_control();
	struct ag_thread *t = ag_thread_slot_known(c);
	struct ss_account *account;
	uint16_t misc;

	if (!block)
		return false;
	if (unlikely(c->thinned_out))
		return free_while_thinned(block, d, return_address);
	if (unlikely(!t))
		return free_in_new_thread(block, d, return_address);
	account = ag_account_of(t);
	if (unlikely(account->depth))
		return true;
	free_begins(account);
	misc = ag_free_misc(d, return_address);
	/* The allocator's own free can be of a block that another thread has freed. */
	if (unlikely(misc) || !ag_ring_end_block(c, t, block, d->hook))
		return put_free(c, t, block, d, misc);
	barrier();
	account->depth = 0;
	return false;
}

void ag_free_nested(ag_word_t block, const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t now;

	if (!ag_begin(&call, f, false))
		return;
	now = ag_ticks_of_end();
	if (!ag_thinned_ends(call.c, block) && ag_recorder_alive(&call, now, MPR_LOST_FREE) &&
	    !ag_put_free(call.c, call.t, MPR_FREE, now, f->desc, block,
			 ag_free_misc(f->desc, f->return_address)))
		ag_lost(&call, MPR_LOST_FREE, 0);
	ag_end(&call);
}

/* free of a wrapper or an unknown allocator: frees that it makes while it runs are inner calls,
 * like allocations that are made by an allocator. */
AG_HOOK(ag_free_through)
{
	struct ag_call call;
	ag_word_t ret;
	uint64_t now;

	/* Also if there is no block: the original is called with a frame of the agent on the
	 * stack. */
	if (unlikely(!ag_begin(&call, f, false))) {
		if (!call.t && a0 && !ag_thinned_ends(call.c, a0))
			ag_count_no_slot_free(call.c);
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	}
	now = ag_ticks_of_end();
	if (a0 && !ag_thinned_ends(call.c, a0) && ag_recorder_alive(&call, now, MPR_LOST_FREE) &&
	    !ag_put_free(call.c, call.t, MPR_FREE, now, f->desc, a0,
			 ag_free_misc(f->desc, f->return_address)))
		ag_lost(&call, MPR_LOST_FREE, 0);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ag_end(&call);
	return ret;
}

AG_HOOK(ag_realloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct ag_call call;
	bool thinned_out, begun;

	if (unlikely(!ag_begin(&call, f, false))) {
		if (!call.t && a0 && !ag_thinned_ends(call.c, a0))
			ag_count_no_slot_free(call.c);
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	}
	if (!a0) {
		block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
		if (block)
			ag_put_alloc(&call, block, size);
	} else {
		/* Before another thread can get the old address. */
		thinned_out = ag_thinned_ends(call.c, a0);
		begun = !thinned_out && ag_put_realloc_begin(&call, a0);
		block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
		if (begun)
			ag_put_realloc_end(&call, a0, block, size, !block && !size);
		else if (thinned_out)
			ag_realloc_thinned(&call, a0, block, size, !block && !size);
	}
	ag_end(&call);
	return block;
}

/* Never moves the block; returns the real size, which can be the old one. */
AG_HOOK(ag_xallocx)
{
	struct ag_call call;
	uint64_t size;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	size = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Only a size that was granted is a change; the block stays live all the time. */
	if (size < a1)
		;
	else if (ag_thinned_ends(call.c, a0))
		ag_realloc_thinned(&call, a0, a0, a1, false);
	else if (ag_put_realloc_begin(&call, a0))
		ag_put_realloc_end(&call, a0, a0, a1, false);
	ag_end(&call);
	return size;
}
