/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the live blocks with a simple array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "model/history/live_blocks.h"

#define ADDRESSES 20000u
#define STEPS	  600000

static uint64_t seed = 7;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 24) % n;
}

/* All values that a block can have; few blocks have those that need more room. */
static struct model_block some_block(uint32_t i)
{
	struct model_block b = {.addr = 0x550000000000 + (uint64_t)i * 16 +
					(i % 3 ? 0 : 0x2a0000000000),
				.size = rnd(50) ? rnd(5000) : rnd(LIVE_MAX_SIZE + 1),
				.time_ns = rnd(1ull << 55),
				.ordinal = rnd(1ull << 40),
				.stack = (uint32_t)(rnd(50) ? rnd(5000) : rnd(1ull << 32)),
				.tid = (uint32_t)rnd(1500),
				.chain = rnd(30) ? 0 : (uint32_t)rnd(1ull << 32),
				.hook = (uint16_t)rnd(2),
				.process = 3,
				.flags = (uint8_t)rnd(2),
				.weight = (uint8_t)(rnd(20) ? 0 : rnd(16))};

	b.usable = b.size + (rnd(40) ? rnd(300) : rnd(1ull << 32));
	return b;
}

static void without_moments(struct model_block *b)
{
	b->time_ns = b->ordinal = 0;
}

/* Whether both are the same block, or both none. */
static bool same(const struct model_block *a, const struct model_block *b)
{
	return a->addr == b->addr &&
	       (!a->addr ||
		(a->size == b->size && a->usable == b->usable && a->time_ns == b->time_ns &&
		 a->ordinal == b->ordinal && a->stack == b->stack && a->tid == b->tid &&
		 a->chain == b->chain && a->hook == b->hook && a->process == b->process &&
		 a->flags == b->flags && a->weight == b->weight));
}

static void against_reference(struct live_blocks *l, unsigned int puts)
{
	struct model_block *at = calloc(ADDRESSES, sizeof(*at)), got;
	size_t n = 0;

	for (int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)rnd(ADDRESSES);
		struct model_block b = some_block(i);

		if (l->without_moments)
			without_moments(&b);
		memset(&got, 0, sizeof(got));
		live_blocks_prefetch(l, b.addr);
		if (rnd(8) < puts) {
			assert_int_equal(live_blocks_put(l, &b, &got), 0);
			assert_true(same(&at[i], &got));
			n += !at[i].addr;
			at[i] = b;
		} else {
			bool there = live_blocks_take(l, b.addr, &got);

			assert_true(there == (at[i].addr != 0));
			assert_true(same(&at[i], &got));
			n -= there;
			at[i].addr = 0;
		}
	}
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		memset(&got, 0, sizeof(got));
		n -= live_blocks_take(l, some_block(i).addr, &got);
		assert_true(same(&at[i], &got));
	}
	assert_int_equal(n, 0);
	free(at);
}

static void test_grows(void **state)
{
	(void)state;
	for (unsigned int puts = 2; puts < 8; puts++) {
		struct live_blocks l = {.process = 3};

		against_reference(&l, puts);
		live_blocks_free(&l);
	}
}

static void test_expects(void **state)
{
	struct live_blocks l = {.process = 3};

	(void)state;
	live_blocks_expect(&l, ADDRESSES / 2);
	against_reference(&l, 5);
	live_blocks_free(&l);
}

static void test_without_moments(void **state)
{
	struct live_blocks l = {.process = 3, .without_moments = true};

	(void)state;
	against_reference(&l, 4);
	live_blocks_free(&l);
}

struct sum {
	uint64_t seen, ordinals;
};

static int count(void *ctx, const struct model_block *b)
{
	struct sum *r = ctx;

	r->seen++;
	r->ordinals += b->ordinal;
	return r->seen == 10000 ? 77 : 0;
}

static void test_each(void **state)
{
	struct live_blocks l = {0};
	struct sum r = {0};
	struct model_block old;

	(void)state;
	assert_int_equal(live_blocks_each(&l, count, &r), 0);
	for (uint64_t i = 1; i < 10000; i++)
		assert_int_equal(
		    live_blocks_put(&l, &(struct model_block){.addr = i * 48, .ordinal = i}, &old),
		    0);
	assert_int_equal(live_blocks_put(&l, &(struct model_block){.ordinal = 5}, &old), 0);
	assert_int_equal(live_blocks_each(&l, count, &r), 0);
	assert_int_equal(r.seen, 9999);
	assert_int_equal(r.ordinals, 9999 * 5000);
	assert_int_equal(live_blocks_each(&l, count, &r), 77);
	live_blocks_free(&l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_grows), cmocka_unit_test(test_expects),
	    cmocka_unit_test(test_without_moments), cmocka_unit_test(test_each)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
