/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Temporary blocks are counted as the definition says, whichever thread ends a block and whatever address
 * a later one has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "record/tallies.h"

#define RINGS  40u
#define STACKS 7u
#define BLOCKS 300u
#define STEPS  200000u

static const uint64_t where = 0x7f0000001000;

static void allocate(struct tallies *t, uint32_t ring, uint64_t addr, uint32_t stack,
		     uint64_t bytes)
{
	struct tallied a = {.ring = ring,
			    .tid = 1000 + ring,
			    .stack = stack,
			    .addr = addr,
			    .of = {.blocks = 1, .bytes = bytes}};

	assert_int_equal(tallies_allocated(t, &a), 0);
}

static void test_relay(void **state)
{
	struct tallies t = {0};

	(void)state;
	assert_int_equal(tallies_init(&t, 2), 0);
	/* Ring 0's block is freed by ring 1, whose own next block gets the address, and is freed by ring
	 * 0: neither is temporary, although it was ring 0's latest address. */
	allocate(&t, 0, where, 1, 10);
	assert_false(tallies_ended(&t, 1, where));
	allocate(&t, 1, where, 1, 10);
	assert_false(tallies_ended(&t, 0, where));
	/* The address once more, by the same thread. */
	allocate(&t, 0, where, 1, 10);
	assert_true(tallies_ended(&t, 0, where));
	assert_false(tallies_ended(&t, 0, where));
	/* The latest but one. */
	allocate(&t, 0, where, 1, 10);
	allocate(&t, 0, where + 64, 1, 10);
	assert_false(tallies_ended(&t, 0, where));
	assert_true(tallies_ended(&t, 0, where + 64));
	tallies_free(&t);
}

/* A pair counts as temporary, and what the thread had allocated before no longer can be. */
static void test_pair(void **state)
{
	struct tallied pair = {
	    .tid = 1000, .stack = 3, .addr = where + 32, .of = {.blocks = 8, .bytes = 80}};
	struct tallies t = {0};

	(void)state;
	assert_int_equal(tallies_init(&t, 1), 0);
	allocate(&t, 0, where, 1, 10);
	assert_int_equal(tallies_pair(&t, &pair), 0);
	assert_false(tallies_ended(&t, 0, where));
	assert_int_equal(t.stacks.at[3].allocations, 8);
	assert_int_equal(t.stacks.at[3].allocated_bytes, 80);
	assert_int_equal(t.stacks.at[3].temporary, 8);
	assert_int_equal(t.stacks.at[3].temporary_bytes, 80);
	assert_int_equal(t.threads.at[0].allocations, 9);
	assert_int_equal(t.threads.at[0].temporary, 8);
	tallies_free(&t);
}

/* A ring that a later thread takes over; a thread that is not known. */
static void test_threads(void **state)
{
	struct tallied a = {
	    .ring = 0, .tid = 5, .stack = 0, .addr = where, .of = {.blocks = 1, .bytes = 1}};
	struct tallies t = {0};

	(void)state;
	assert_int_equal(tallies_init(&t, 2), 0);
	assert_int_equal(tallies_allocated(&t, &a), 0);
	a.tid = 6;
	assert_int_equal(tallies_allocated(&t, &a), 0);
	a.ring = 1;
	a.tid = 5;
	a.addr += 16;
	assert_int_equal(tallies_allocated(&t, &a), 0);
	a.tid = 0;
	assert_int_equal(tallies_allocated(&t, &a), 0);
	tallies_temporary(&t, 1, 0, 1, 20);
	assert_int_equal(t.threads.n, 2);
	assert_int_equal(t.threads.at[0].tid, 5);
	assert_int_equal(t.threads.at[0].allocations, 2);
	assert_int_equal(t.threads.at[0].temporary, 0);
	assert_int_equal(t.threads.at[1].tid, 6);
	assert_int_equal(t.threads.at[1].allocations, 1);
	assert_int_equal(t.stacks.at[0].allocations, 4);
	assert_int_equal(t.stacks.at[0].temporary, 1);
	assert_int_equal(t.stacks.at[0].temporary_bytes, 20);
	tallies_free(&t);
}

static void test_vary(void **state)
{
	struct tallies t = {0};

	(void)state;
	assert_int_equal(tallies_init(&t, 1), 0);
	tallies_vary(&t, 2, 56);
	tallies_vary(&t, 2, 12);
	tallies_vary(&t, 2, -56);
	assert_true(tallies_variance(&t, 2) == 12);
	assert_true(tallies_variance(&t, 0) == 0);
	assert_true(tallies_variance(&t, 3) == 0);
	tallies_free(&t);
}

/* The definition, with the number of each allocation. */
struct truth {
	uint64_t latest[RINGS]; /* number of the thread's latest allocation */
	struct {
		uint64_t number; /* 0: not live */
		uint32_t ring, stack;
	} block[BLOCKS];
	uint64_t temporary[STACKS], allocations[STACKS];
};

static void test_random(void **state)
{
	struct tallies t = {0};
	struct truth truth;
	uint64_t seed = 7, number = 0;

	(void)state;
	memset(&truth, 0, sizeof(truth));
	assert_int_equal(tallies_init(&t, RINGS), 0);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t ring, at;
		uint64_t addr;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		ring = (uint32_t)(seed >> 33) % RINGS;
		at = (uint32_t)(seed >> 40) % BLOCKS;
		/* Half of the ends are those of the thread's latest block. */
		for (uint32_t k = 0; seed >> 63 && k < BLOCKS; k++) {
			if (truth.block[k].number && truth.block[k].number == truth.latest[ring])
				at = k;
		}
		addr = where + 16ull * at;
		if (!truth.block[at].number) {
			truth.block[at].number = truth.latest[ring] = ++number;
			truth.block[at].ring = ring;
			truth.block[at].stack = (uint32_t)(seed >> 50) % STACKS;
			truth.allocations[truth.block[at].stack]++;
			allocate(&t, ring, addr, truth.block[at].stack, 1);
			continue;
		}
		if (truth.block[at].number == truth.latest[ring])
			truth.temporary[truth.block[at].stack]++;
		truth.block[at].number = 0;
		if (tallies_ended(&t, ring, addr))
			tallies_temporary(&t, ring, truth.block[at].stack, 1, 3);
	}
	for (uint32_t s = 0; s < STACKS; s++) {
		assert_int_equal(t.stacks.at[s].allocations, truth.allocations[s]);
		assert_int_equal(t.stacks.at[s].temporary, truth.temporary[s]);
		assert_true(truth.temporary[s] > 1000);
	}
	tallies_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_relay), cmocka_unit_test(test_pair),
	    cmocka_unit_test(test_threads), cmocka_unit_test(test_vary),
	    cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
