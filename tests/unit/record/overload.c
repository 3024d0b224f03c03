/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Above the memory ceiling frees are dropped last, and dropped events are counted by kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "record/queue.h"
#include "record/wire.h"

/* Return: a batch of @pairs allocations and frees from one ring. */
static struct batch *batch(uint32_t pairs)
{
	struct batch *b = calloc(1, sizeof(*b));
	uint8_t *p;

	b->nsegments = 1;
	b->segment = calloc(1, sizeof(*b->segment));
	b->bytes = pairs * (sizeof(struct mpr_alloc) + sizeof(struct mpr_free));
	b->size = sizeof(*b) + b->bytes;
	b->segment[0].bytes = b->bytes;
	p = b->data = malloc(b->bytes);
	for (uint32_t i = 0; i < pairs; i++) {
		struct mpr_alloc a = {{MPR_ALLOC, 0, sizeof(a)}, 2 * i, 4096 + i, 100, 0};
		struct mpr_free f = {{MPR_FREE, 0, sizeof(f)}, 2 * i + 1, 4096 + i};

		memcpy(p, &a, sizeof(a));
		memcpy(p + sizeof(a), &f, sizeof(f));
		p += sizeof(a) + sizeof(f);
	}
	return b;
}

static void counts_by_kind(void **state)
{
	struct batch *b = batch(10);
	struct queue_drop d = {0};

	(void)state;
	wire_census(b, &d);
	assert_int_equal(d.batches, 1);
	assert_int_equal(d.events[MPR_LOST_ALLOC], 10);
	assert_int_equal(d.events[MPR_LOST_FREE], 10);
	assert_int_equal(d.requested, 1000);
	assert_int_equal(d.bytes, b->bytes);
	batch_free(b);
}

static void thinned_batch_keeps_frees(void **state)
{
	struct batch *b = batch(10);
	struct queue_drop d = {0}, left = {0};

	(void)state;
	wire_drop_blocks(b, &d);
	assert_int_equal(d.batches, 0);
	assert_int_equal(d.events[MPR_LOST_ALLOC], 10);
	assert_int_equal(d.events[MPR_LOST_FREE], 0);
	assert_int_equal(b->bytes, 10 * sizeof(struct mpr_free));
	assert_int_equal(b->size, sizeof(*b) + b->bytes);
	wire_census(b, &left);
	assert_int_equal(left.events[MPR_LOST_FREE], 10);
	assert_int_equal(left.events[MPR_LOST_OTHER], 0);
	batch_free(b);
}

static void damaged_records_are_counted(void **state)
{
	struct batch *b = batch(2);
	struct queue_drop d = {0};

	(void)state;
	((struct mpr_header *)(b->data + sizeof(struct mpr_alloc)))->size = 0;
	wire_drop_blocks(b, &d);
	assert_int_equal(d.events[MPR_LOST_OTHER], 1);
	assert_int_equal(b->bytes, 0);
	batch_free(b);
}

static void ceiling_leaves_room_for_frees(void **state)
{
	struct batch *a = batch(8), *b = batch(8), *c;
	/* The queue can use 11/16 of the ceiling. */
	struct queue *q = queue_new((2 * a->size * 16 + 10) / 11);
	struct queue_drop d = {0};

	(void)state;
	assert_true(queue_put(q, a, QUEUE_ALL));
	assert_false(queue_put(q, b, QUEUE_ALL)); /* allocations can fill 7/8 of it */
	assert_true(queue_put(q, b, QUEUE_FREES));
	c = batch(1);
	assert_false(queue_put(q, c, QUEUE_FREES));
	wire_census(c, &d);
	queue_count_drop(q, &d);
	assert_int_equal(queue_stats(q).dropped.batches, 1);
	assert_int_equal(queue_stats(q).peak_bytes, 2 * a->size);
	assert_true(queue_put(q, c, QUEUE_BARRIER));
	queue_free(q);
}

static void ended_queue_takes_nothing(void **state)
{
	struct queue *q = queue_new(1 << 20);
	struct batch *a = batch(1), *b = batch(1);

	(void)state;
	assert_true(queue_put(q, a, QUEUE_ALL));
	queue_end(q);
	assert_false(queue_put(q, b, QUEUE_BARRIER));
	assert_ptr_equal(queue_get(q), a); /* batches already in the queue are returned */
	queue_done(q, a);
	assert_null(queue_get(q));
	assert_int_equal(queue_stats(q).bytes, 0);
	batch_free(a);
	batch_free(b);
	queue_free(q);
}

static void prefix_ends_at_a_time(void **state)
{
	struct batch *b = batch(10);
	uint64_t pair = sizeof(struct mpr_alloc) + sizeof(struct mpr_free);

	(void)state;
	assert_int_equal(wire_up_to(b->data, b->bytes, 0), sizeof(struct mpr_alloc));
	assert_int_equal(wire_up_to(b->data, b->bytes, 3), 2 * pair);
	assert_int_equal(wire_up_to(b->data, b->bytes, UINT64_MAX), b->bytes);
	batch_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts_by_kind),
	    cmocka_unit_test(thinned_batch_keeps_frees),
	    cmocka_unit_test(damaged_records_are_counted),
	    cmocka_unit_test(ceiling_leaves_room_for_frees),
	    cmocka_unit_test(ended_queue_takes_nothing),
	    cmocka_unit_test(prefix_ends_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
