/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A round is read in slices: no record is left out or read twice, each slice ends at a certain
 * time, and none is too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formats/record.h"
#include "record/kernel/slice.h"

#define SIZE  65536ull
#define RINGS 3

static struct perf_event_mmap_page page[RINGS];
static uint8_t data[RINGS][SIZE];

static struct ring test_ring(int k)
{
	return ring_of(&page[k], data[k], SIZE);
}

/* Writes records of 24 bytes with times from @first on, @step apart.  The first one wraps around
 * the ring's end. */
static void fill(int k, uint64_t n, uint64_t first, uint64_t step)
{
	page[k].data_tail = page[k].data_head = SIZE - 16;
	for (uint64_t i = 0; i < n; i++) {
		struct mpr_free f = {{MPR_FREE, 0, sizeof(f)}, first + i * step, 4096};

		for (size_t w = 0; w < sizeof(f); w += 8)
			memcpy(data[k] + (page[k].data_head + w) % SIZE, (char *)&f + w, 8);
		page[k].data_head += sizeof(f);
	}
}

/* Return: the time of the ring's first unread record. */
static uint64_t next_time(int k)
{
	uint64_t time;

	memcpy(&time, data[k] + (page[k].data_tail + 8) % SIZE, 8);
	return time;
}

static void slices_are_bounded_and_whole(void **state)
{
	const uint64_t most = 6000;
	struct ring ring[RINGS];
	uint64_t ready[RINGS], total = 0, slices = 0, end;
	struct slicer s;

	(void)state;
	fill(0, 2000, 1000, 10); /* records all the time */
	fill(1, 1000, 20000, 1); /* a burst */
	fill(2, 1, 5, 1);	 /* one early record */
	for (int k = 0; k < RINGS; k++) {
		ring[k] = test_ring(k);
		total += ready[k] = ring_ready(&ring[k]);
	}
	assert_int_equal(total, 3001 * 24);
	slice_begin(&s, ring, ready, RINGS, 21000, most);
	do {
		uint64_t sum = 0;

		end = slice_next(&s);
		for (int k = 0; k < RINGS; k++) {
			uint64_t n = slice_up_to(&ring[k], ready[k], end);

			ring_advance(&ring[k], n);
			ready[k] -= n;
			sum += n;
			assert_true(!ready[k] || next_time(k) > end);
		}
		assert_true(sum <= most);
		assert_true(sum > 0);
		total -= sum;
		slices++;
	} while (end != UINT64_MAX);
	assert_int_equal(total, 0);
	assert_true(slices >= 12 && slices <= 24);
}

static void damaged_ring_is_given_up(void **state)
{
	struct slicer s;
	struct ring ring;
	uint64_t ready;

	(void)state;
	fill(0, 100, 1, 1);
	ring = test_ring(0);
	/* The ring's eleventh record has size 0. */
	memset(data[0] + (page[0].data_tail + 240) % SIZE, 0, 8);
	ready = ring_ready(&ring);
	slice_begin(&s, &ring, &ready, 1, 100, 120);
	assert_true(slice_next(&s) < 10);
	assert_int_equal(slice_up_to(&ring, ready, 4), 4 * 24);
	assert_int_equal(slice_up_to(&ring, ready, 50), ready);
	while (slice_next(&s) != UINT64_MAX)
		;
}

static void same_time_is_one_slice(void **state)
{
	struct ring ring = test_ring(0);
	struct slicer s;
	uint64_t ready;

	(void)state;
	fill(0, 1000, 7, 0);
	ready = ring_ready(&ring);
	slice_begin(&s, &ring, &ready, 1, 7, 120);
	assert_int_equal(slice_next(&s), 7);
	assert_int_equal(slice_up_to(&ring, ready, 7), ready);
	assert_int_equal(slice_next(&s), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(slices_are_bounded_and_whole),
	    cmocka_unit_test(damaged_ring_is_given_up),
	    cmocka_unit_test(same_time_is_one_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
