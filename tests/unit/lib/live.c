/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the live table with a simple array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "lib/live.h"

#define ADDRESSES 5000
#define STEPS	  400000

static uint64_t seed = 7;

static uint64_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 24;
}

static uint64_t address(uint32_t i)
{
	return 0x550000000000 + (uint64_t)i * 16 + (i % 3 ? 0 : 0x2a0000000000);
}

/* Checks that the table has the same blocks as the reference. */
static void same_blocks(const struct live *l, const struct live_block *reference)
{
	struct live_block b;
	uint64_t at = 0;
	size_t n = 0;

	while (live_next(l, &at, &b))
		n++;
	assert_int_equal(n, live_count(l));
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		bool there = live_find(l, address(i), &b);

		assert_true(there == (reference[i].addr != 0));
		if (there)
			assert_true(b.addr == reference[i].addr && b.size == reference[i].size &&
				    b.stack == reference[i].stack);
	}
}

/* @puts of 8 steps insert a block, the others remove one. */
static void against_reference(unsigned int percent, unsigned int puts)
{
	struct live_block *reference = calloc(ADDRESSES, sizeof(*reference));
	struct live *l = live_new(percent);
	size_t live = 0;

	for (int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)(rnd() % ADDRESSES);
		struct live_block b = {address(i), rnd() % 7 ? rnd() % 5000 : rnd() & LIVE_MAX_SIZE,
				       (uint32_t)rnd(), 0},
				  old;

		if (b.size < 5000)
			b.weight = (uint8_t)(rnd() % 16);

		if (rnd() % 8 < puts) {
			assert_int_equal(live_put(l, &b, &old), 0);
			assert_true(old.addr == reference[i].addr);
			if (old.addr)
				assert_true(old.size == reference[i].size &&
					    old.stack == reference[i].stack &&
					    old.weight == reference[i].weight);
			else
				live++;
			reference[i] = b;
		} else if (live_take(l, address(i), &b)) {
			assert_true(reference[i].addr == b.addr && reference[i].size == b.size &&
				    reference[i].stack == b.stack &&
				    reference[i].weight == b.weight);
			reference[i].addr = 0;
			live--;
		} else {
			assert_true(reference[i].addr == 0);
		}
		assert_int_equal(live_count(l), live);
		if (!(step % (STEPS / 32)))
			same_blocks(l, reference);
	}
	live_free(l);
	free(reference);
}

static void half_empty(void **state)
{
	(void)state;
	against_reference(80, 4);
}

/* Many searches must continue in the next bucket, and after the last one in the first. */
static void nearly_full(void **state)
{
	(void)state;
	against_reference(97, 6);
}

/* Limit: 32 bytes per live block at any size, except while the table grows. */
static void memory(void **state)
{
	struct live *l = live_new(80);
	struct live_block b = {.size = 1}, old;

	(void)state;
	for (uint32_t i = 1; i <= 300000; i++) {
		b.addr = (uint64_t)i * 48;
		assert_int_equal(live_put(l, &b, &old), 0);
		if (i > 10000)
			assert_true(live_memory(l) <= 32ull * i);
	}
	live_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(half_empty),
					   cmocka_unit_test(nearly_full), cmocka_unit_test(memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
