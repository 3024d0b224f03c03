/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Thinning: when a thread's ring fills up, only some of its allocations are recorded, and each of
 * those represents 2^k.  Blocks that are thinned out are in the session's set (sample.h), so that
 * their ends write nothing.  doc/thinning.md says why the result is unbiased.
 *
 * Safe in a signal handler and after longjmp: a handler between two instructions changes only the
 * random state, which stays random, and counts that need not be exact.  After fork the gate is
 * closed; during exit nothing here depends on other state.  Uses no system call, and only memory of
 * the session.
 */
#ifndef AGENT_THIN_H
#define AGENT_THIN_H

#include "agent/ring.h"
#include "agent/sample.h"

#define AG_THINNED_OUT UINT32_MAX

/* thin.c: ag_thin() if there is or was pressure. */
uint32_t ag_thin_slowly(const struct ag_call *call, uint64_t now, uint64_t block, uint64_t size);

/*
 * Decides at @now (ticks) whether the allocation of @block is recorded.  To be called once for each
 * block, before its record is written.
 * Return: k if it is recorded and represents 2^k allocations; AG_THINNED_OUT if it is not.
 */
static inline __attribute__((always_inline)) uint32_t
ag_thin(const struct ag_call *call, uint64_t now, uint64_t block, uint64_t size)
{
	uint64_t head = *(volatile uint64_t *)&ag_ring_page(call->c, call->t)->data_head;

	if (likely(head - call->t->s.tail_seen < call->c->thin_from))
		return 0;
	return ag_thin_slowly(call, now, block, size);
}

#endif
