/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --zero: fills blocks of malloc and similar functions with zeros, like calloc's.  The block has
 * not been returned yet, so no other code writes to it, and all of it can be written.
 */
#include "agent/call.h"

AG_HOOK(ag_zero_alloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct ag_call call;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (likely(block)) {
		ag_zero_bytes(block, size);
		ag_put_alloc(&call, block, size);
	}
	ag_end(&call);
	return block;
}
