/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --free-stacks: frees with the stack that they were called from.  The original is called, not
 * jumped to: the stack is walked and the record written while the block still belongs to the
 * program. */
#include "agent/call.h"

static void put_traced(const struct ag_call *call, uint64_t block)
{
	const struct ag_frame *f = call->f;
	uint64_t now = ticks();
	struct mpr_free_stack rec = {
	    {MPR_FREE_STACK, free_misc(f->desc, f->return_address), sizeof(rec)},
	    now,
	    addr_hook(f->desc, block),
	    MPR_STACK_NONE,
	    0};

	if (!fresh(call, now, MPR_LOST_FREE))
		return;
	rec.stack = take_stack(call, now);
	if (!ring_put(call->c, call->t, &rec, ring_limit(call->c, true)))
		lost(call, MPR_LOST_FREE, 0);
}

AG_HOOK(ag_free_traced)
{
	struct ag_call call;
	ag_word_t ret;

	if (unlikely(!begin(&call, f, false))) {
		if (!call.t && a0)
			count_no_slot_free(call.c);
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	}
	if (a0)
		put_traced(&call, a0);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	end(&call);
	return ret;
}
