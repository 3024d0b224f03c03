/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --zero: fills blocks of malloc and similar functions with zeros, like calloc's.  The block has
 * not been returned yet, so no other code writes to it, and all of it can be written.
 */
#include "agent/call.h"

/* Unless the architecture has an instruction for this.  Uses no vector registers, and no branch that
 * depends on the old content. */
#ifndef AG_ZERO_BYTES
#define AG_ZERO_BYTES(at, n) zero_bytes(at, n)
static void zero_bytes(ag_word_t at, uint64_t n)
{
	const ag_word_t end = at + (ag_word_t)n, word = sizeof(ag_word_t);

	for (; at < end && at % word; at++)
		*(volatile uint8_t *)at = 0;
	for (; end - at >= word; at += word)
		*(volatile ag_word_t *)at = 0;
	for (; at < end; at++)
		*(volatile uint8_t *)at = 0;
}
#endif

AG_HOOK(ag_zero_alloc)
{
	uint64_t size = ag_requested(f->desc, a0, a1, a2);
	ag_word_t block;
	struct ag_call call;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (likely(block)) {
		uint64_t at = block, n = size;

		AG_ZERO_BYTES(at, n);
		ag_put_alloc(&call, block, size);
	}
	ag_end(&call);
	return block;
}
