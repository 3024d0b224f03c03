/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The producer's side of a perf-format ring, one ring per thread.  Only the thread itself and
 * signal handlers in it write.  A record is written after the head and then published by moving the
 * head with a compare-and-swap.  If that fails, a signal handler has written its own records there,
 * and the interrupted record is written again after them.  A writer that never finishes (longjmp,
 * the thread is killed) leaves nothing that needs repair.
 */
#ifndef AGENT_RING_H
#define AGENT_RING_H

#include <linux/perf_event.h>
#include "agent/agent.h"

#define AG_RING_PAGE  4096 /* struct perf_event_mmap_page */
#define AG_RING_TRIES 64

#define AG_RING_COPY_MAX (32u << 10) /* of a stack that is sent to the recorder */

/*
 * ring.c: is there room up to @end?  Reads the reader's position again.  In lossless mode waits for
 * room until the recorder's deadline passes.
 */
bool ag_ring_room(struct ss_control *c, struct ag_thread *t, uint64_t end, uint64_t limit);
void ag_ring_wake_reader(struct ss_control *c);

static inline struct perf_event_mmap_page *ag_ring_page(struct ss_control *c, struct ag_thread *t)
{
	return (void *)((char *)t + c->slot_ring);
}

static inline uint64_t *ag_ring_data(struct perf_event_mmap_page *page)
{
	return (uint64_t *)((char *)page + AG_RING_PAGE);
}

/* Allocations leave a part of the ring to frees. */
static inline uint64_t ag_ring_limit(const struct ss_control *c, bool is_free)
{
	return is_free ? c->ring_size : c->ring_alloc;
}

/* Reserves nothing; sets @at to where @size bytes can be written.  Return: false if there is no
 * room. */
static inline bool ag_ring_at(struct ss_control *c, struct ag_thread *t, uint32_t size,
			      uint64_t limit, uint64_t *at)
{
	*at = *(volatile uint64_t *)&ag_ring_page(c, t)->data_head;
	return likely(*at + size - t->s.tail_seen <= limit) ||
	       ag_ring_room(c, t, *at + size, limit);
}

/* Publishes the record that was written at @at.  Return: false if a signal handler has written
 * there. */
static inline bool ag_ring_publish(struct ss_control *c, struct ag_thread *t, uint64_t at,
				   uint32_t size)
{
	if (unlikely(!ag_cas_local((uint64_t *)&ag_ring_page(c, t)->data_head, at, at + size)))
		return false;
	if (unlikely((at ^ (at + size)) & c->ring_wake))
		ag_ring_wake_reader(c);
	return true;
}

/* Copies @n words; the ring can wrap at any word. */
static inline void ag_ring_write(struct ss_control *c, struct ag_thread *t, uint64_t at,
				 const uint64_t *words, uint32_t n)
{
	uint64_t *data = ag_ring_data(ag_ring_page(c, t)), mask = c->ring_size / 8 - 1;

	for (uint32_t k = 0; k < n; k++)
		data[(at / 8 + k) & mask] = words[k];
}

/*
 * ring.c: copies @n bytes at @addr of this process, at most AG_RING_COPY_MAX, without faulting on
 * unmapped memory.  Return: number of leading bytes that were readable, or a negative errno.
 */
long ag_ring_copy(struct ss_control *c, struct ag_thread *t, uint64_t at, uint64_t addr,
		  uint32_t n);

/* ring.c: writes one record, which begins with struct mpr_header.  Return: false if there was no
 * room. */
bool ag_ring_put(struct ss_control *c, struct ag_thread *t, const void *record, uint64_t limit);

/* ring.c: ag_ring_put_words() if there is no room, the ring wraps, or a signal handler
 * interrupted. */
bool ag_ring_put_slowly(struct ss_control *c, struct ag_thread *t, uint64_t limit, uint64_t w0,
			uint64_t w1, uint64_t w2, uint64_t w3);

static inline uint64_t *ag_ring_recent(struct ag_thread *t, uint64_t block)
{
	uint64_t h = block >> 4;

	return &t->recent[(h ^ h >> 8) % AG_RECENT];
}

/* The block's record no longer tells its end: its next end gets a record of its own. */
static inline void ag_ring_forget(struct ss_control *c, struct ag_thread *t, uint64_t block)
{
	*ag_ring_recent(t, block) = ag_ring_page(c, t)->data_head - MPR_RECENT - 8;
}

/*
 * Notes the end of a block that this thread allocated a moment ago in the block's own record
 * (mpr_ended()).  The hint is not trusted: the record must be recent, have the address, and
 * not have ended.  The compare-and-swap fails if a signal handler came between and changed it.
 * Return: false if the end needs a record of its own.
 */
static inline __attribute__((always_inline)) bool
ag_ring_end_block(struct ss_control *c, struct ag_thread *t, uint64_t block, uint32_t hook)
{
	struct perf_event_mmap_page *page = ag_ring_page(c, t);
	uint64_t head = *(volatile uint64_t *)&page->data_head;
	uint64_t at = *ag_ring_recent(t, block), mask = c->ring_size - 1, *record, w0;

	if (head - at > MPR_RECENT || hook > MPR_ENDED_MAX_HOOK)
		return false;
	record = (uint64_t *)((char *)ag_ring_data(page) + (at & mask));
	w0 = *(volatile uint64_t *)record;
	if (mpr_head_type(w0) != MPR_ALLOC || (record[2] ^ block) << (64 - MPR_ADDR_BITS))
		return false;
	if (unlikely(!ag_cas_local(record, w0, mpr_head_ended(w0, (uint32_t)(head - at), hook))))
		return false;
	/* A handler's records made this one too old meanwhile: the reader may have looked
	 * at it for the last time, or another record is there now. */
	if (unlikely(*(volatile uint64_t *)&page->data_head - at > MPR_RECENT)) {
		w0 = *(volatile uint64_t *)record;
		ag_cas_local(record, w0, mpr_head_open(w0));
		return false;
	}
	t->s.written[MPR_LOST_FREE]++;
	return true;
}

/*
 * ag_ring_put() for the two most frequent records, from registers.  The size is in @w0.  @block:
 * the block that an MPR_ALLOC record begins, which ag_ring_end_block() then finds; 0: none.
 */
static inline __attribute__((always_inline)) bool
ag_ring_put_words(struct ss_control *c, struct ag_thread *t, uint64_t limit, uint64_t block,
		  uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3)
{
	struct perf_event_mmap_page *page = ag_ring_page(c, t);
	uint64_t at = *(volatile uint64_t *)&page->data_head, size = mpr_head_size(w0);
	uint64_t in = at & (c->ring_size - 1), *to = (uint64_t *)((char *)ag_ring_data(page) + in);

	if (unlikely(at + size - t->s.tail_seen > limit || in + size > c->ring_size))
		return ag_ring_put_slowly(c, t, limit, w0, w1, w2, w3);
	to[0] = w0;
	to[1] = w1;
	to[2] = w2;
	if (size > 24)
		to[3] = w3;
	if (unlikely(!ag_cas_local((uint64_t *)&page->data_head, at, at + size)))
		return ag_ring_put_slowly(c, t, limit, w0, w1, w2, w3);
	t->s.written[mpr_kind(mpr_head_type(w0))]++;
	if (block)
		*ag_ring_recent(t, block) = at;
	if (unlikely((at ^ (at + size)) & c->ring_wake))
		ag_ring_wake_reader(c);
	return true;
}

#endif
