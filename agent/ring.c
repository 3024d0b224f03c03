/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The producer's side of a perf-format ring, one ring per thread.  Only the thread itself and
 * signal handlers on it write, so one instruction without a bus lock reserves; the outermost
 * writer publishes, as the kernel's perf_output_put_handle() does, so that the reader never sees
 * a record that a signal interrupted.
 */
#include <linux/perf_event.h>
#include "agent/agent.h"

/* Allocations leave an eighth of the ring to frees: a lost free would be a false leak. */
#define RESERVE_SHIFT 3
#define SPINS	      64
#define RING_PAGE     4096 /* struct perf_event_mmap_page */

static struct perf_event_mmap_page *ring_page(struct ss_control *c, struct ag_thread *t)
{
	return (void *)((char *)t + c->slot_ring);
}

static void wake_reader(struct ss_control *c)
{
	if (__atomic_load_n(&c->reader_sleeps, __ATOMIC_RELAXED) && c->may_syscall) {
		__atomic_store_n(&c->reader_sleeps, 0, __ATOMIC_RELAXED);
		raw_syscall(AG_NR_FUTEX, (long)&c->reader_sleeps, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
	}
}

/* Waits for the reader; bounded by its heartbeat. */
static bool wait_for_room(struct ss_control *c, struct ag_thread *t, uint64_t end)
{
	struct perf_event_mmap_page *page = ring_page(c, t);

	for (uint32_t i = 1;; i++) {
		t->s.tail_seen = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
		if (end - t->s.tail_seen <= c->ring_size)
			return true;
		if (ticks() > c->deadline)
			return false;
		cpu_pause();
		if (i % SPINS == 0 && c->may_syscall) {
			wake_reader(c);
			raw_syscall(AG_NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
		}
	}
}

/* Ends one level of writing; the outermost makes everything reserved so far visible. */
static void publish(struct ss_control *c, struct ag_thread *t)
{
	uint64_t head;

	if (unlikely(t->s.writers > 1)) {
		t->s.writers--;
		return;
	}
	do {
		head = *(volatile uint64_t *)&t->s.reserve;
		__atomic_store_n(&ring_page(c, t)->data_head, head, __ATOMIC_RELEASE);
		*(volatile uint32_t *)&t->s.writers = 0;
		/* A signal between the load and the store of 0 left its record to us. */
	} while (unlikely(*(volatile uint64_t *)&t->s.reserve != head));
}

static bool has_room(const struct ag_thread *t, uint64_t end, uint64_t limit)
{
	return end - t->s.tail_seen <= limit;
}

bool ring_reserve(struct ss_control *c, struct ag_thread *t, uint32_t size, bool may_use_all,
		  uint64_t *position)
{
	uint64_t limit = may_use_all || c->lossless
			     ? c->ring_size
			     : c->ring_size - (c->ring_size >> RESERVE_SHIFT);
	uint64_t at;

	t->s.writers++;
	do {
		at = t->s.reserve;
		if (unlikely(!has_room(t, at + size, limit))) {
			t->s.tail_seen =
			    __atomic_load_n(&ring_page(c, t)->data_tail, __ATOMIC_ACQUIRE);
			if (!has_room(t, at + size, limit) &&
			    !(c->lossless && wait_for_room(c, t, at + size))) {
				wake_reader(c);
				publish(c, t);
				return false;
			}
		}
	} while (unlikely(!cas_local(&t->s.reserve, at, at + size)));
	*position = at;
	return true;
}

void ring_write(struct ss_control *c, struct ag_thread *t, uint64_t position, const uint64_t *words,
		uint32_t n)
{
	uint64_t *data = (uint64_t *)((char *)ring_page(c, t) + RING_PAGE);
	uint64_t mask = c->ring_size / 8 - 1, i = position / 8;

	for (uint32_t k = 0; k < n; k++)
		data[(i + k) & mask] = words[k];
}

void ring_commit(struct ss_control *c, struct ag_thread *t, uint64_t position, uint32_t size)
{
	publish(c, t);
	/* The reader sleeps at most until a quarter of a ring is new. */
	if (unlikely((position ^ (position + size)) & ~(c->ring_size / 4 - 1)))
		wake_reader(c);
}

void ring_reset(struct ss_control *c, struct ag_thread *t)
{
	t->s.reserve = __atomic_load_n(&ring_page(c, t)->data_head, __ATOMIC_RELAXED);
	t->s.writers = 0;
	t->s.lost[MPR_LOST_OTHER]++;
}
