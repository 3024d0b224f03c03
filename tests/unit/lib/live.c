/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the live table with simple arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* A large table; there: [block] whether it has it. */
struct large {
	struct live *l;
	uint32_t n, most;
	bool *there;
};

static struct large new_large(unsigned int percent, uint32_t most)
{
	return (struct large){live_new(percent), 0, most, calloc(most, sizeof(bool))};
}

static struct live_block large_block(uint32_t i)
{
	return (struct live_block){.addr = address(i), .size = i, .stack = ~i};
}

static int put_large(struct large *t)
{
	struct live_block b = large_block(t->n), old;
	int ret = live_put(t->l, &b, &old);

	if (ret)
		return ret;
	assert_true(!old.addr);
	t->there[t->n++] = true;
	return 0;
}

static void take_large(struct large *t, uint32_t i)
{
	struct live_block b;

	assert_true(live_take(t->l, address(i), &b) == t->there[i]);
	if (t->there[i])
		assert_true(b.addr == address(i) && b.size == i && b.stack == ~i);
	t->there[i] = false;
}

/* Checks that the table has the same blocks as the array. */
static void same_large(const struct large *t)
{
	struct live_block b;
	uint64_t at = 0, sum = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		assert_true(live_find(t->l, address(i), &b) == t->there[i]);
		if (!t->there[i])
			continue;
		assert_true(b.addr == address(i) && b.size == i && b.stack == ~i);
		sum += i;
		n++;
	}
	assert_int_equal(n, live_count(t->l));
	for (; live_next(t->l, &at, &b); n--)
		sum -= b.size;
	assert_true(!n && !sum);
}

static void free_large(struct large *t)
{
	live_free(t->l);
	free(t->there);
}

/* Some blocks are taken between two growths. */
static void grow_in_place(unsigned int percent, uint32_t most, double bytes)
{
	struct large t = new_large(percent, most);
	size_t before = 0;

	while (t.n < most) {
		assert_int_equal(put_large(&t), 0);
		if (!(t.n % 4))
			take_large(&t, (uint32_t)(rnd() % t.n));
		if (live_memory(t.l) == before)
			continue;
		before = live_memory(t.l);
		same_large(&t);
		if (before > 12u << 20)
			assert_true((double)before <= bytes * (double)live_count(t.l));
	}
	same_large(&t);
	free_large(&t);
}

static void large(void **state)
{
	(void)state;
	grow_in_place(68, 3000000, 26);
}

/* Long rows of full buckets, some of which continue at the beginning of the table. */
static void large_and_nearly_full(void **state)
{
	(void)state;
	grow_in_place(97, 1200000, 18.5);
}

static void limit(int resource, rlim_t soft)
{
	struct rlimit r;

	assert_int_equal(getrlimit(resource, &r), 0);
	r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
	assert_int_equal(setrlimit(resource, &r), 0);
}

/* When there is no memory to grow, the table remains as it is. */
static void without_memory(void **state)
{
	struct large t = new_large(68, 1000000);

	(void)state;
	while (t.n < 600000)
		assert_int_equal(put_large(&t), 0);
	limit(RLIMIT_DATA, 4096);
	while (t.n < t.most && !put_large(&t))
		;
	limit(RLIMIT_DATA, RLIM_INFINITY);
	assert_in_range(t.n, 600000, t.most - 1);
	same_large(&t);
	while (t.n < t.most)
		assert_int_equal(put_large(&t), 0);
	same_large(&t);
	free_large(&t);
}

/* The same without address space to grow in place. */
static void without_address_space(void **state)
{
	limit(RLIMIT_AS, 1u << 30);
	without_memory(state);
	limit(RLIMIT_AS, RLIM_INFINITY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(half_empty),
					   cmocka_unit_test(nearly_full),
					   cmocka_unit_test(memory),
					   cmocka_unit_test(large),
					   cmocka_unit_test(large_and_nearly_full),
					   cmocka_unit_test(without_memory),
					   cmocka_unit_test(without_address_space)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
