/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --free-stacks: frees with the stack that they were called from.  The original is called, not
 * jumped to: the stack is walked and the record written while the block still belongs to the
 * program. */
#include "agent/call.h"

static void put_traced(const struct ag_call *call, uint64_t block)
{
	const struct ag_frame *f = call->f;
	uint64_t now = ag_ticks_of_end();
	struct mpr_free_stack rec = {
	    {MPR_FREE_STACK, ag_free_misc(f->desc, f->return_address), sizeof(rec)},
	    now,
	    ag_addr_hook(f->desc, block),
	    MPR_STACK_NONE,
	    0};

	if (!ag_recorder_alive(call, now, MPR_LOST_FREE))
		return;
	rec.h.misc |= ag_skipped(call->t);
	rec.stack = ag_take_stack(call, now);
	if (!ag_ring_put(call->c, call->t, &rec, ag_ring_limit(call->c, true)))
		ag_lost(call, MPR_LOST_FREE, 0);
}

AG_HOOK(ag_free_traced)
{
	struct ag_call call;
	ag_word_t ret;

	if (unlikely(!ag_begin(&call, f, false))) {
		if (!call.t && a0 && !ag_thinned_ends(call.c, a0))
			ag_count_no_slot_free(call.c);
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	}
	if (a0 && !ag_thinned_ends(call.c, a0))
		put_traced(&call, a0);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ag_end(&call);
	return ret;
}
