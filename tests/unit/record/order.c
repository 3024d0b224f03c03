/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends of blocks that are noted in the records of their allocations: where they come among the
 * events of a batch, and in which batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "record/order/order.h"

#define SEGMENTS 4
#define BYTES	 1024

static struct order order;
static struct order_rest rest;
static struct batch batch;
static struct segment segments[SEGMENTS];
static uint8_t data[BYTES];

static int begin(void **state)
{
	(void)state;
	memset(&order, 0, sizeof(order));
	return 0;
}

static int end(void **state)
{
	(void)state;
	order_free(&order);
	order_rest_free(&rest);
	vec_free(&batch.ends);
	return 0;
}

/* Begins a batch that is complete up to @until; the reader looked for ends at @read_at. */
static void new_batch(uint64_t until, uint64_t read_at)
{
	vec_free(&batch.ends);
	batch =
	    (struct batch){.until = until, .read_at = read_at, .segment = segments, .data = data};
}

static void new_segment(uint32_t slot, uint64_t position)
{
	segments[batch.nsegments++] = (struct segment){.slot = slot, .position = position};
}

static void put(const void *record, size_t size)
{
	memcpy(data + batch.bytes, record, size);
	batch.bytes += size;
	segments[batch.nsegments - 1].bytes += size;
}

/* @ended: distance to the position at which the block ended; 0: not noted. */
static void put_alloc(uint64_t addr, uint64_t time, uint32_t ended)
{
	struct mpr_alloc r = {
	    {MPR_ALLOC | ended >> 3 << MPR_ENDED_SHIFT, 0, sizeof(r)}, time, addr, 8, 0};

	put(&r, sizeof(r));
}

static void put_free(uint64_t addr, uint64_t time)
{
	struct mpr_free r = {{MPR_FREE, 0, sizeof(r)}, time, addr};

	put(&r, sizeof(r));
}

/* The end at @position of a block whose record was in an earlier batch. */
static void put_end(uint64_t addr, uint64_t position)
{
	struct end e = {{{MPR_FREE, 0, sizeof(e.free)}, 0, addr}, position};

	assert_int_equal(vec_push(&batch.ends, e), 0);
	segments[batch.nsegments - 1].nends++;
}

static void take(void)
{
	assert_int_equal(order_take(&order, &rest, &batch, UINT64_MAX), 0);
}

/* Processes the batch and compares its events: "+" or "-", slot, "@", address. */
static void assert_order(const char *expected)
{
	char text[256] = "";
	size_t i;

	take();
	for (i = 0; i < order.n && order.events[i].time <= order.until; i++) {
		const struct pending *e = &order.events[i];
		bool ends = order_ended(e);

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%u@%x",
			 i ? " " : "", ends ? '-' : '+', e->slot,
			 (unsigned)(ends ? order_ended(e) : order_begun(e)));
	}
	order_rest(&order, &rest);
	assert_string_equal(text, expected);
}

/* Another thread allocates the address while the thread that ended the block sleeps. */
static void kept_end_comes_first(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 10, 32);
	assert_order("+0@10");
	new_batch(1000, 1100);
	new_segment(1, 0);
	put_alloc(0x10, 200, 0);
	new_segment(0, 32);
	put_alloc(0x20, 500, 0);
	assert_order("-0@10 +1@10 +0@20");
}

/* The thread's next record was written long after it was dated. */
static void kept_end_comes_before_late_record(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 10, 32);
	assert_order("+0@10");
	new_batch(1000, 1100);
	new_segment(0, 32);
	put_alloc(0x10, 50, 0);
	assert_order("-0@10 +0@10");
}

static void end_comes_after_kept_record(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 120, 0);
	assert_order("");
	new_batch(1000, 1100);
	new_segment(0, 32);
	put_end(0x10, 32);
	put_alloc(0x20, 300, 0);
	assert_order("+0@10 -0@10 +0@20");
}

static void end_comes_after_late_record(void **state)
{
	(void)state;
	new_batch(100, 150);
	assert_order("");
	new_batch(1000, 1100);
	new_segment(0, 0);
	put_alloc(0x10, 50, 32);
	put_alloc(0x20, 60, 0);
	assert_order("+0@10 -0@10 +0@20");
}

/* A block can be left out of the live table only if nothing else ends one at its address. */
static void waiting_end_is_known(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 10, 32);
	new_segment(1, 0);
	put_alloc(0x10, 50, 32);
	put_free(0x20, 60);
	take();
	assert_true(order_can_end(&order, 0x10, 1));
	assert_false(order_can_end(&order, 0x30, 1));
	assert_int_equal(order_waiting_end(&order, 1, 0x30), order.n);
	assert_int_equal(order.events[order_waiting_end(&order, 1, 0x10)].slot, 0);
}

/* A thread's own ends are in order with its other events, so they cannot end another block ... */
static void own_end_is_no_other(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 50, 32);
	take();
	assert_true(order_can_end(&order, 0x10, 1));
	assert_false(order_can_end(&order, 0x10, 0));
}

/* ... unless another thread uses the address, too. */
static void own_end_is_of_shared_block(void **state)
{
	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 50, 32);
	new_segment(1, 0);
	put_alloc(0x10, 60, 32);
	put_alloc(0x20, 70, 0);
	take();
	assert_true(order_can_end(&order, 0x10, 1));
	assert_true(order_can_end(&order, 0x10, 0));
}

/* A batch with an allocation, and the end of its block, after the batch's time. */
static void put_late_pair(void)
{
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 110, 32);
	put_alloc(0x20, 120, 0);
}

/* A block that begins and ends after a batch's time: it is short in the next batch. */
static void late_pair_is_short(void **state)
{
	(void)state;
	put_late_pair();
	assert_order("");
	new_batch(1000, 1100);
	take();
	assert_int_equal(order.n, 3);
	assert_int_equal(order.events[0].what & (ORDER_SHORT | ORDER_END), ORDER_SHORT);
	assert_int_equal(order.events[1].what, order.events[0].what | ORDER_END);
	assert_int_equal(order.events[1].time, 110);
	assert_false(order_can_end(&order, 0x10, 1));
}

/* The same if the next batch is not complete up to the thread's next record: another thread's free of
 * the address, at a time between them, can be missing. */
static void late_pair_is_not_settled(void **state)
{
	(void)state;
	put_late_pair();
	assert_order("");
	new_batch(115, 116);
	take();
	assert_int_equal(order.n, 3);
	assert_int_equal(order.events[0].what & (ORDER_SHORT | ORDER_END), 0);
	assert_true(order_is_end(&order.events[1]) || order_is_end(&order.events[2]));
	assert_true(order_can_end(&order, 0x10, 1));
	assert_int_equal(order.events[0].time, 110);
}

/* The same if another thread's event needed the allocation before its turn: the block is known by its
 * number, and the end stays that of this block. */
static void taken_block_has_number(void **state)
{
	(void)state;
	put_late_pair();
	take();
	assert_int_equal(order.events[0].what & ORDER_SHORT, ORDER_SHORT);
	order.events[0].slot = ORDER_TAKEN;
	order_rest(&order, &rest);
	new_batch(1000, 1100);
	take();
	assert_int_equal(order.n, 2);
	assert_int_equal(order.events[0].what & (ORDER_SHORT | ORDER_END), ORDER_SHORT | ORDER_END);
	assert_true(order_can_end(&order, 0x10, 0));
}

/* Of ends that wait, the first one that can have been before an allocation. */
static void waiting_end_is_possible(void **state)
{
	size_t end;

	(void)state;
	new_batch(100, 150);
	new_segment(0, 0);
	put_alloc(0x10, 10, 32);
	new_segment(1, 0);
	put_alloc(0x10, 40, 32);
	put_free(0x20, 120);
	new_segment(2, 0);
	put_alloc(0x10, 50, 0);
	put_alloc(0x10, 60, 0);
	take();
	/* In order of time: the allocations of slots 0, 1, 2 and 2. */
	end = order_waiting_end(&order, 1, 0x10);
	assert_int_equal(order.events[end].slot, 0);
	end = order_waiting_end(&order, 2, 0x10);
	assert_int_equal(order.events[end].slot, 1);
	order.events[end].slot = ORDER_TAKEN;
	end = order_waiting_end(&order, 3, 0x10);
	assert_int_equal(order.events[end].slot, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(kept_end_comes_first),	       TEST(kept_end_comes_before_late_record),
	    TEST(end_comes_after_kept_record), TEST(end_comes_after_late_record),
	    TEST(waiting_end_is_known),	       TEST(waiting_end_is_possible),
	    TEST(own_end_is_no_other),	       TEST(own_end_is_of_shared_block),
	    TEST(late_pair_is_short),	       TEST(late_pair_is_not_settled),
	    TEST(taken_block_has_number)};

	return cmocka_run_group_tests_name("record/order", tests, NULL, NULL);
}
