/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* With and without a thread, the same batches have the same events in the same order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "record/order/sorter.h"

#define BATCHES 200u
#define RECORDS 50u /* of each batch */
#define SLOTS	3u
#define STEP	1000u /* ticks between two batches */

struct seen {
	uint64_t time, addr;
	uint32_t slot, what;
};
typedef VEC(struct seen) seen_list;

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* A batch of allocations in three rings, the latest of which are left to the next batch.  Some have their
 * end in the same record. */
static struct batch *new_batch(uint64_t i)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct mpr_alloc *r;

	assert_non_null(b);
	b->until = i * STEP;
	b->read_at = b->until + STEP / 2;
	b->segment = calloc(SLOTS, sizeof(*b->segment));
	b->nsegments = SLOTS;
	b->bytes = SLOTS * RECORDS * sizeof(*r);
	b->size = b->bytes;
	b->data = calloc(1, b->bytes);
	assert_non_null(b->data);
	r = (void *)b->data;
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		uint64_t time = b->until - STEP / 2;

		b->segment[slot] = (struct segment){.slot = slot,
						    .bytes = RECORDS * sizeof(*r),
						    .position = i * RECORDS * sizeof(*r)};
		for (uint32_t k = 0; k < RECORDS; k++, r++) {
			time += rnd(2 * STEP / RECORDS);
			*r = (struct mpr_alloc){.h = {MPR_ALLOC, 0, sizeof(*r)},
						.time = time,
						.addr_hook = 16 * (1 + rnd(100)),
						.size = 8};
			if (!rnd(3))
				r->h.type |= 4 << MPR_ENDED_SHIFT;
		}
	}
	return b;
}

static void fill(struct queue *q)
{
	seed = 1;
	for (uint64_t i = 1; i <= BATCHES; i++)
		assert_true(queue_put(q, new_batch(i), QUEUE_ALL));
	queue_end(q);
}

static void see(seen_list *list, const struct pending *e)
{
	const struct mpr_alloc *r = (const void *)e->rec;

	assert_int_equal(
	    vec_push(list, ((struct seen){e->time, r->addr_hook, e->slot, e->what & 3})), 0);
}

/* Processes all batches; every @early batches, one of each @early records of the rest before its turn. */
static seen_list process(bool thread, unsigned int early)
{
	struct queue *q = queue_new(64u << 20);
	struct sorter s = {0};
	struct sorted *next;
	seen_list list = {0};
	unsigned int n = 0;

	assert_non_null(q);
	fill(q);
	sorter_start(&s, q, thread);
	while ((next = sorter_next(&s))) {
		struct order *o = &next->order;

		assert_int_equal(next->discarded, 0);
		assert_int_equal(next->batch->until, ++n * STEP);
		for (size_t i = 0; i < o->complete; i++)
			see(&list, &o->events[i]);
		for (size_t i = o->complete; early && !(n % early) && i < o->n; i += early) {
			see(&list, &o->events[i]);
			o->events[i].slot = ORDER_TAKEN;
		}
	}
	assert_int_equal(n, BATCHES);
	sorter_stop(&s);
	assert_int_equal(queue_stats(q).bytes, 0);
	queue_free(q);
	return list;
}

static void assert_same(unsigned int early)
{
	seen_list alone = process(false, early), thread = process(true, early);

	assert_true(alone.n > BATCHES * RECORDS);
	assert_int_equal(alone.n, thread.n);
	assert_memory_equal(alone.at, thread.at, alone.n * sizeof(*alone.at));
	vec_free(&alone);
	vec_free(&thread);
}

static void thread_sorts_the_same(void **state)
{
	(void)state;
	assert_same(0);
}

/* The batch after it has been sorted already, with these records. */
static void records_taken_early_come_once(void **state)
{
	(void)state;
	assert_same(1);
	assert_same(2);
	assert_same(7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(thread_sorts_the_same),
	    cmocka_unit_test(records_taken_early_come_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
