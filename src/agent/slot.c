/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds a thread slot by thread pointer: open addressing, claimed by compare-and-swap.  Safe in a
 * signal handler: a claim is one atomic instruction and everything after it is idempotent.
 */
#include "agent/ring.h"

static uint32_t thread_id(struct ss_control *c, uint64_t tp)
{
	if (likely(c->tid_known))
		return *(uint32_t *)(uintptr_t)(tp + c->tid_offset);
	return 0;
}

static void announce(struct ss_control *c, struct ag_thread *t, uint32_t tid)
{
	struct mpr_thread rec = {{MPR_THREAD, 0, sizeof(rec)}, ag_ticks(), tid, 0};

	if (ag_ring_put(c, t, &rec, ag_ring_limit(c, true)))
		t->s.tid = tid;
	else
		t->s.lost[MPR_LOST_OTHER]++;
}

struct ag_thread *ag_thread_slot_find(struct ss_control *c, uint64_t tp)
{
	uint32_t mask = c->nslots - 1, i = ss_first_slot(tp, mask), tid;
	struct ss_account *account;
	struct ag_thread *t;

	if (unlikely(!tp)) {
		AG_OWN(ag_gate)->unaccounted = 1;
		return NULL;
	}
	for (uint32_t n = 0; n < SS_PROBES; n++, i = (i + 1) & mask) {
		uint64_t free_slot = 0;

		t = ag_at_offset(c, c->slots + (uint64_t)i * c->slot_stride);
		if (t->s.tp == 0 && __atomic_compare_exchange_n(&t->s.tp, &free_slot, tp, false,
								__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			__atomic_fetch_add(&c->slots_claimed, 1, __ATOMIC_RELEASE);
		if (likely(t->s.tp == tp))
			goto found;
	}
	__atomic_fetch_add(&c->lost_no_slot, 1, __ATOMIC_RELAXED);
	AG_OWN(ag_gate)->unaccounted = 1;
	return NULL;
found:
	ag_local_of(tp)->slot_addr = (uintptr_t)t;
	t->s.account = i;
	account = ag_account_of(t);
	account->tp = tp;
	tid = thread_id(c, tp);
	if (unlikely(tid != t->s.tid || !tid)) {
		if (!tid && !t->s.tid && c->may_syscall)
			tid = (uint32_t)ag_raw_syscall(AG_NR_GETTID, 0, 0, 0, 0, 0, 0);
		if (tid && tid != t->s.tid) {
			/* An earlier thread can have died in a hook. */
			if (account->tid != tid)
				account->depth = account->nleft = 0;
			account->tid = tid;
			announce(c, t, tid);
		}
	}
	return t;
}
