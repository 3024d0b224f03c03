/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When a ring is full or its reader sleeps. */
#include "agent/ring.h"

#define SPINS 64

void ring_wake_reader(struct ss_control *c)
{
	if (__atomic_load_n(&c->reader_sleeps, __ATOMIC_RELAXED) && c->may_syscall) {
		__atomic_store_n(&c->reader_sleeps, 0, __ATOMIC_RELAXED);
		raw_syscall(AG_NR_FUTEX, (long)&c->reader_sleeps, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
	}
}

bool ring_room(struct ss_control *c, struct ag_thread *t, uint64_t end, uint64_t limit)
{
	struct perf_event_mmap_page *page = ring_page(c, t);

	for (uint32_t i = 1;; i++) {
		t->s.tail_seen = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
		if (end - t->s.tail_seen <= limit)
			return true;
		if (!c->lossless || ticks() > c->deadline) {
			ring_wake_reader(c);
			return false;
		}
		cpu_pause();
		if (i % SPINS == 0 && c->may_syscall) {
			ring_wake_reader(c);
			raw_syscall(AG_NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
		}
	}
}

bool ring_put(struct ss_control *c, struct ag_thread *t, const void *record, uint64_t limit)
{
	uint32_t size = ((const struct mpr_header *)record)->size;
	uint32_t type = ((const struct mpr_header *)record)->type;
	uint64_t at;

	for (int i = 0; i < RING_TRIES; i++) {
		if (!ring_at(c, t, size, limit, &at))
			return false;
		ring_write(c, t, at, record, size / 8);
		if (ring_publish(c, t, at, size)) {
			t->s.written[mpr_kind(type)]++;
			return true;
		}
	}
	return false;
}

bool ring_put_slowly(struct ss_control *c, struct ag_thread *t, uint64_t limit, uint64_t w0,
		     uint64_t w1, uint64_t w2, uint64_t w3)
{
	uint64_t words[4] = {w0, w1, w2, w3};

	return ring_put(c, t, words, limit);
}
