/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's thinning and the recorder's estimates are together without bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "agent/sample.c"
#include "agent/thin.c"
#include "lib/estimate.h"

#define RING   (1u << 20)
#define SET    (1u << 16)
#define RUNS   400
#define BLOCKS 20000
#define LEAKS  1000
#define HOT    64u
#define LEAK   777u
#define WINDOW 4096 /* allocations */

struct ss_gate ag_gate;
uint8_t ag_filter[SS_FILTER];
struct ss_local ag_locals[SS_LOCALS];
struct ss_account ag_accounts[1];

struct target {
	struct ss_control *c;
	struct ag_thread *t;
	struct perf_event_mmap_page *page;
	struct ag_frame frame;
	struct ag_call call;
	uint64_t now;
};

/* A session with one thread, whose ring is not full. */
static struct target *target_new(uint64_t seed)
{
	struct target *x = calloc(1, sizeof(*x));
	uint64_t slot = sizeof(struct ss_control) + 8ull * SET;

	x->c = calloc(1, slot + sizeof(struct ag_thread) + 8192);
	assert_non_null(x->c);
	x->c->sampled = sizeof(struct ss_control);
	x->c->nsampled = SET;
	x->c->slot_ring = sizeof(struct ag_thread);
	x->c->ring_size = RING;
	x->c->thin_from = x->c->ring_thin = RING / 2;
	x->c->ring_shift = 14;
	x->c->thin_window = WINDOW;
	x->t = (void *)((char *)x->c + slot);
	x->t->thinning.random = seed * GOLDEN + 1;
	x->page = ag_ring_page(x->c, x->t);
	x->call = (struct ag_call){.c = x->c, .t = x->t, .f = &x->frame};
	memset(ag_filter, 0, sizeof(ag_filter));
	return x;
}

static void target_free(struct target *x)
{
	free(x->c);
	free(x);
}

static void under_pressure(struct target *x, uint32_t pressure)
{
	x->c->pressure = pressure;
	x->c->thin_from = 0;
}

/* An allocation by the function at @from.  Return: as ag_thin(). */
static uint32_t allocates(struct target *x, uint64_t block, uint64_t size, uint64_t from)
{
	x->frame.return_address = from;
	return ag_thin(&x->call, ++x->now, block, size);
}

/* What a run estimates, and what it says of its error. */
struct said {
	double leaks, variance, all;
};

/* Each 20th allocation is a leak, the others are freed 64 allocations later. */
static struct said run(uint64_t seed, uint32_t pressure)
{
	struct target *x = target_new(seed);
	uint32_t recorded[HOT] = {0};
	struct said said = {0};
	uint64_t set = 0;

	under_pressure(x, pressure);
	for (uint64_t i = 0; i < BLOCKS; i++) {
		bool leaks = i % (BLOCKS / LEAKS) == 0;
		uint64_t block = leaks ? 0x100000000 + i * 1024 : 0x1000 + i % HOT * 1024;
		struct estimate e;
		uint32_t k;

		if (!leaks && i >= HOT && recorded[i % HOT])
			assert_int_equal(ag_thinned_ends(x->c, block),
					 recorded[i % HOT] == AG_THINNED_OUT);
		k = allocates(x, block, leaks ? LEAK : 100, leaks ? 0x1234 : 0x4321);
		if (!leaks)
			recorded[i % HOT] = k == AG_THINNED_OUT ? k : k + 1;
		if (k == AG_THINNED_OUT)
			continue;
		assert_in_range(k, 0, MPR_WEIGHT_MAX);
		e = estimate_block(0, leaks ? LEAK : 100, k, i);
		said.all += (double)e.blocks;
		if (leaks) {
			assert_true(e.bytes == e.blocks * LEAK);
			said.leaks += (double)e.blocks;
			said.variance += e.variance_blocks;
		}
	}
	for (uint64_t i = 0; i < SET; i++)
		set += ((uint64_t *)ag_at_offset(x->c, x->c->sampled))[i] != 0;
	/* Left-out blocks that are live, and only those, are in the set. */
	assert_in_range(set, 0, LEAKS + HOT);
	target_free(x);
	return said;
}

/* The mean of many runs is the truth, and 95 % of the intervals of two standard errors contain
 * it. */
static void without_bias(uint32_t pressure)
{
	double sum = 0, all = 0, variance = 0;
	int covered = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct said said = run(seed, pressure);

		sum += said.leaks;
		all += said.all;
		variance += said.variance;
		covered += fabs(said.leaks - LEAKS) <= 1.96 * sqrt(said.variance) + 0.5;
	}
	print_message(
	    "# pressure %u: %.1f leaks of %d, standard error of one run %.1f, of the mean "
	    "%.2f; %.1f %% covered; %.0f allocations of %d\n",
	    pressure, sum / RUNS, LEAKS, sqrt(variance / RUNS), sqrt(variance) / RUNS,
	    100.0 * covered / RUNS, all / RUNS, BLOCKS);
	assert_true(fabs(sum / RUNS - LEAKS) <= 4 * sqrt(variance) / RUNS);
	assert_true(fabs(all / RUNS / BLOCKS - 1) < 0.05);
	assert_true(covered >= RUNS * 90 / 100);
}

static void unbiased(void **state)
{
	(void)state;
	for (uint32_t pressure = 8; pressure <= 12; pressure++)
		without_bias(pressure);
}

/* The rarer a kind is, the less it is thinned. */
static void rare_kinds_are_kept(void **state)
{
	struct target *x = target_new(7);
	uint64_t rare = 0, frequent = 0;

	(void)state;
	under_pressure(x, 9);
	for (uint64_t i = 0; i < 100000; i++) {
		if (i % 1000 == 0)
			rare += allocates(x, 0x100000000 + i * 64, 32, 0x9999) != AG_THINNED_OUT;
		else
			frequent += allocates(x, 0x1000, 32, 0x8888) != AG_THINNED_OUT;
		ag_thinned_ends(x->c, 0x1000);
	}
	assert_int_equal(rare, 100);
	assert_in_range(frequent, 100, 10000);
	target_free(x);
}

/* Without pressure, and for large blocks, everything is recorded. */
static void exact(void **state)
{
	struct target *x = target_new(8);

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(allocates(x, 0x10000 + i * 16, 16, 1), 0);
	under_pressure(x, 40);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(allocates(x, 0x10000 + i * 16, MPR_WEIGHT_MAX_SIZE, 1), 0);
	assert_int_equal(x->c->thinned_out, 0);
	target_free(x);
}

/* The ring's own level counts if the recorder does not say anything. */
static void full_ring(void **state)
{
	struct target *x = target_new(9);
	uint64_t thinned_out = 0;

	(void)state;
	x->page->data_head = RING / 2 + (15u << 14);
	for (uint64_t i = 0; i < 10000; i++)
		thinned_out += allocates(x, 0x10000 + i * 16, 16, 1) == AG_THINNED_OUT;
	assert_int_equal(thinned_out, x->t->s.thinned_out);
	assert_int_equal(16 * thinned_out, x->t->s.thinned_bytes);
	assert_in_range(thinned_out, 5000, 10000);
	x->page->data_tail = x->page->data_head;
	assert_int_equal(allocates(x, 0x10000, 16, 1), 0);
	target_free(x);
}

/* Blocks that find no room in the set are recorded, and count once. */
static void full_set(void **state)
{
	struct target *x = target_new(10);
	uint64_t recorded = 0, weighted = 0;

	(void)state;
	under_pressure(x, 15);
	for (uint64_t i = 0; i < 4 * SET; i++) {
		uint32_t k = allocates(x, 0x10000 + i * 16, 16, 1);

		recorded += k == 0;
		weighted += k && k != AG_THINNED_OUT ? 1ull << k : 0;
	}
	assert_in_range(recorded, 2 * SET, 4 * SET);
	assert_in_range(recorded + weighted, 4 * SET - SET, 4 * SET + SET);
	target_free(x);
}

/* A block that was thinned out and whose end was not seen does not hide the next one at its
 * address. */
static void stale_entry(void **state)
{
	struct target *x = target_new(11);

	(void)state;
	under_pressure(x, 40);
	while (allocates(x, 0x10000, 16, 1) != AG_THINNED_OUT)
		;
	assert_int_equal(x->t->thinning.skipped, 1);
	x->c->pressure = 0;
	assert_int_equal(allocates(x, 0x10000, 16, 1), 0);
	assert_int_equal(x->t->thinning.skipped, 0);
	assert_false(ag_thinned_ends(x->c, 0x10000));
	target_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unbiased), cmocka_unit_test(rare_kinds_are_kept),
	    cmocka_unit_test(exact),	cmocka_unit_test(full_ring),
	    cmocka_unit_test(full_set), cmocka_unit_test(stale_entry),
	};

	return cmocka_run_group_tests_name("thinning", tests, NULL, NULL);
}
