/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The live table against a slow and obvious one. */
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

static void against_reference(void **state)
{
	static struct live_block reference[ADDRESSES];
	struct live *l = live_new(80);
	size_t live = 0;

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)(rnd() % ADDRESSES);
		struct live_block b = {address(i), rnd() % 7 ? rnd() % 5000 : rnd() & LIVE_MAX_SIZE,
				       (uint32_t)rnd()},
				  old;

		if (rnd() % 2) {
			assert_int_equal(live_put(l, &b, &old), 0);
			assert_true(old.addr == reference[i].addr);
			if (old.addr)
				assert_true(old.size == reference[i].size &&
					    old.stack == reference[i].stack);
			else
				live++;
			reference[i] = b;
		} else if (live_take(l, address(i), &b)) {
			assert_true(reference[i].addr == b.addr && reference[i].size == b.size &&
				    reference[i].stack == b.stack);
			reference[i].addr = 0;
			live--;
		} else {
			assert_true(reference[i].addr == 0);
		}
		assert_int_equal(live_count(l), live);
	}
	live_free(l);
}

/* The bar: at most 32 bytes a live block at any size, growth aside. */
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(against_reference),
					   cmocka_unit_test(memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
