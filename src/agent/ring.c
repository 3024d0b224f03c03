/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The slow paths of the ring: it is full, it wraps, or its reader sleeps. */
#include "agent/ring.h"

#define SPINS 64

/* struct iovec */
struct ag_iovec {
	ag_word_t base, length;
};

void ag_ring_wake_reader(struct ss_control *c)
{
	if (__atomic_load_n(&c->reader_sleeps, __ATOMIC_RELAXED) && c->may_syscall) {
		__atomic_store_n(&c->reader_sleeps, 0, __ATOMIC_RELAXED);
		ag_raw_syscall(AG_NR_FUTEX, (long)&c->reader_sleeps, 1 /* FUTEX_WAKE */, 1, 0, 0,
			       0);
	}
}

bool ag_ring_room(struct ss_control *c, struct ag_thread *t, uint64_t end, uint64_t limit)
{
	struct perf_event_mmap_page *page = ag_ring_page(c, t);

	for (uint32_t i = 1;; i++) {
		t->s.tail_seen = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
		if (end - t->s.tail_seen <= limit)
			return true;
		if (!c->lossless || ag_ticks() > c->deadline) {
			ag_ring_wake_reader(c);
			return false;
		}
		ag_cpu_pause();
		if (i % SPINS == 0 && c->may_syscall) {
			ag_ring_wake_reader(c);
			ag_raw_syscall(AG_NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
		}
	}
}

long ag_ring_copy(struct ss_control *c, struct ag_thread *t, uint64_t at, uint64_t addr, uint32_t n)
{
	/* One for each page, because the kernel can stop a copy only at the end of an element. */
	struct ag_iovec from[AG_RING_COPY_MAX / AG_PAGE + 1], to[2];
	uint64_t in = at & (c->ring_size - 1);
	uint32_t pages = 0, first = n;

	if (first > c->ring_size - in)
		first = (uint32_t)(c->ring_size - in);
	to[0].base = (uintptr_t)ag_ring_data(ag_ring_page(c, t)) + (uintptr_t)in;
	to[0].length = first;
	to[1].base = (uintptr_t)ag_ring_data(ag_ring_page(c, t));
	to[1].length = n - first;
	for (uint32_t done = 0; done < n; done += (uint32_t)from[pages++].length) {
		from[pages].base = (uintptr_t)(addr + done);
		from[pages].length = (ag_word_t)(AG_PAGE - from[pages].base % AG_PAGE);
		if (from[pages].length > n - done)
			from[pages].length = n - done;
	}
	/* Access to the own process needs no permission. */
	return ag_raw_syscall(AG_NR_PROCESS_VM_READV, (long)t->s.tid, (long)(uintptr_t)to, 2,
			      (long)(uintptr_t)from, (long)pages, 0);
}

bool ag_ring_put(struct ss_control *c, struct ag_thread *t, const void *record, uint64_t limit)
{
	uint32_t size = ((const struct mpr_header *)record)->size;
	uint32_t type = ((const struct mpr_header *)record)->type;
	uint64_t at;

	for (int i = 0; i < AG_RING_TRIES; i++) {
		if (!ag_ring_at(c, t, size, limit, &at))
			return false;
		ag_ring_write(c, t, at, record, size / 8);
		if (ag_ring_publish(c, t, at, size)) {
			t->s.written[mpr_kind(type)]++;
			return true;
		}
	}
	return false;
}

bool ag_ring_put_slowly(struct ss_control *c, struct ag_thread *t, uint64_t limit, uint64_t w0,
			uint64_t w1, uint64_t w2, uint64_t w3)
{
	uint64_t words[4] = {w0, w1, w2, w3};

	return ag_ring_put(c, t, words, limit);
}
