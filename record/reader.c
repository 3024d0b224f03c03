/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reader thread: drains all rings into batches, keeps the heartbeat, never waits for anybody.
 *
 * Why one bound in time keeps every address's history right: what causally precedes a record was
 * committed before it (a block is recorded as freed before it is free, as allocated before it is
 * handed out).  All records up to the time taken before the heads are read are in this round, so
 * the aggregator can sort by time and stop there; later ones wait for the next round.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "lib/fault.h"
#include "record/internal.h"

#define HEARTBEAT_S   3
#define SLEEP_MS      20
#define NICE	      -10
#define REORDER_TICKS 10000 /* rdtsc may run ahead of earlier instructions: some microseconds */

struct ss_thread *slot_at(const struct recorder *r, uint32_t i)
{
	return (struct ss_thread *)((char *)r->config.block + r->slots + i * r->slot_stride);
}

void reader_heartbeat(struct recorder *r)
{
	uint64_t rate;

	fault_point("record");
	pthread_mutex_lock(&r->clock_lock);
	rate = (uint64_t)r->clock.rate_guess;
	pthread_mutex_unlock(&r->clock_lock);
	__atomic_store_n(&r->config.block->deadline, clock_ticks() + HEARTBEAT_S * rate,
			 __ATOMIC_RELAXED);
}

static struct ring ring_at(const struct recorder *r, uint32_t i)
{
	char *page = (char *)slot_at(r, i) + r->slot_ring;

	return (struct ring){(struct perf_event_mmap_page *)page, (const uint8_t *)page + 4096,
			     r->ring_size};
}

static struct batch *batch_new(uint32_t max_segments)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b)
		b->segment = calloc(max_segments ? max_segments : 1, sizeof(*b->segment));
	if (!b || !b->segment) {
		batch_free(b);
		return NULL;
	}
	return b;
}

/* One round.  Return: bytes drained. */
static uint64_t drain(struct recorder *r, bool last)
{
	uint64_t until = last ? UINT64_MAX : clock_ticks() - REORDER_TICKS, total = 0, used = 0;
	uint32_t active = 0;
	struct batch *b;
	bool copy;

	for (uint32_t i = 0; i < r->nslots; i++)
		active += __atomic_load_n(&slot_at(r, i)->tp, __ATOMIC_ACQUIRE) != 0;
	b = batch_new(active);
	if (!b)
		return 0;
	b->until = until;
	/* All heads before any data: a round is one moment of all rings. */
	for (uint32_t i = 0; i < r->nslots && b->nsegments < active; i++) {
		struct ring ring;
		uint64_t n;

		if (!__atomic_load_n(&slot_at(r, i)->tp, __ATOMIC_ACQUIRE))
			continue;
		ring = ring_at(r, i);
		n = ring_ready(&ring);
		if (!n)
			continue;
		b->segment[b->nsegments++] = (struct segment){i, slot_at(r, i)->tid, n};
		total += n;
	}
	/* What is more than the queue may hold it will drop: no memory for what a target claims. */
	copy = total <= r->queue_ceiling;
	b->data = total && copy ? malloc(total) : NULL;
	if (total && copy && !b->data) {
		batch_free(b);
		return 0;
	}
	for (uint32_t k = 0; k < b->nsegments; k++) {
		struct ring ring = ring_at(r, b->segment[k].slot);

		if (copy)
			ring_copy(&ring, b->data + used, b->segment[k].bytes);
		ring_advance(&ring, b->segment[k].bytes);
		used += b->segment[k].bytes;
	}
	b->bytes = total;
	b->size = total + sizeof(*b) + b->nsegments * sizeof(*b->segment);
	/* Also an empty batch moves time on: what waited for a later round comes out. */
	queue_put(r->queue, b, total / sizeof(struct mpr_free));
	return total;
}

/* Sleeps until the agent says that a quarter of a ring is new, or a while. */
static void wait_for_agent(struct recorder *r)
{
	struct timespec timeout = {0, SLEEP_MS * 1000000};

	__atomic_store_n(&r->config.block->reader_sleeps, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &r->config.block->reader_sleeps, FUTEX_WAIT, 1, &timeout, NULL, 0);
	__atomic_store_n(&r->config.block->reader_sleeps, 0, __ATOMIC_RELAXED);
}

void *reader_run(void *arg)
{
	struct recorder *r = arg;

	/* Best effort: a reader that runs in time is what keeps rings small and nothing lost. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		uint64_t n;

		reader_heartbeat(r);
		/* Lossless: the rings fill up and the agent waits, as long as we are alive. */
		if (r->lossless && queue_is_full(r->queue)) {
			usleep(1000);
			continue;
		}
		n = drain(r, false);
		if (n < r->ring_size / 8)
			wait_for_agent(r);
	}
	drain(r, true);
	queue_end(r->queue);
	return NULL;
}
