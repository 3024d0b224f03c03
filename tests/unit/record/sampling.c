/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's countdown and the recorder's estimates are together without bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "agent/countdown.h"
#include "lib/estimate.h"

#define INTERVAL 4096u
#define DRAWS	 2000000
#define RUNS	 400
#define BLOCKS	 20000

/* Fixed seeds make these tests deterministic. */
static struct ss_local begun(uint64_t seed)
{
	struct ss_local s = {.random = seed * 0x9e3779b97f4a7c15ull + 1};

	for (int i = 0; i < 8; i++)
		ag_countdown_random(&s);
	s.left = ag_countdown_draw(&s, INTERVAL);
	return s;
}

static void draws_are_exponential(void **state)
{
	static const double quantile[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.9999};
	struct ss_local s = begun(1);
	double below[8] = {0}, sum = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		double x = (double)ag_countdown_draw(&s, 1 << 30) / (1 << 30);

		sum += x;
		for (int q = 0; q < 8; q++)
			below[q] += x < -log1p(-quantile[q]);
	}
	assert_true(fabs(sum / DRAWS - 1) < 5 / sqrt(DRAWS));
	for (int q = 0; q < 8; q++) {
		double p = quantile[q], sd = sqrt(p * (1 - p) / DRAWS);

		assert_true(fabs(below[q] / DRAWS - p) < 5 * sd);
	}
}

static void whole_range_of_intervals(void **state)
{
	struct ss_local s = begun(2);

	(void)state;
	for (uint64_t interval = 1; interval <= SS_MAX_INTERVAL; interval *= 2) {
		double sum = 0;

		for (int i = 0; i < 10000; i++) {
			int64_t x = ag_countdown_draw(&s, interval);

			assert_true(x >= 0 && x <= (int64_t)(interval * 45));
			sum += (double)x;
		}
		/* The mean of the floor of an exponential: 1 / (exp(1/T) - 1). */
		assert_true(fabs(sum / 10000 * expm1(1 / (double)interval) - 1) < 0.08);
	}
}

static void a_block_is_sampled_by_its_size(void **state)
{
	static const uint64_t size[] = {1, 16, 100, 1000, 4096, 20000};
	struct ss_local s = begun(3);

	(void)state;
	for (int k = 0; k < 6; k++) {
		double p = -expm1(-(double)size[k] / INTERVAL), n = 1000000, hit = 0;

		for (int i = 0; i < (int)n; i++)
			hit += ag_countdown_passes(&s, size[k], INTERVAL);
		assert_true(fabs(hit / n - p) < 5 * sqrt(p * (1 - p) / n));
	}
	assert_false(ag_countdown_passes(&s, 0, INTERVAL));
}

/* Blocks of mixed sizes, some of which are freed: compares sums of weights with the true sums, and
 * the reported standard errors with the actual errors. */
static void estimates_are_unbiased(void **state)
{
	double off_bytes = 0, off_blocks = 0, off_live = 0, off2_bytes = 0, off2_blocks = 0;
	double sum_var_bytes = 0, sum_var_blocks = 0, sum_var_live = 0;

	(void)state;
	for (uint64_t run = 0; run < RUNS; run++) {
		struct ss_local s = begun(100 + run);
		double bytes = 0, blocks = 0, live = 0, var_bytes = 0, var_blocks = 0, var_live = 0;
		double true_bytes = 0, true_live = 0;
		uint64_t x = run;

		for (int i = 0; i < BLOCKS; i++) {
			uint64_t size;
			struct estimate e;

			x = x * 6364136223846793005ull + 1442695040888963407ull;
			size = x >> 60 ? 1 + (x >> 40) % 500 : 1 + (x >> 40) % 50000;
			true_bytes += (double)size;
			if (i % 3 == 0)
				true_live += (double)size;
			if (!ag_countdown_passes(&s, size, INTERVAL))
				continue;
			e = estimate_block(INTERVAL, size, 0, x);
			bytes += (double)e.bytes;
			blocks += (double)e.blocks;
			var_bytes += e.variance_bytes;
			var_blocks += e.variance_blocks;
			if (i % 3 == 0) {
				live += (double)e.bytes;
				var_live += e.variance_bytes;
			}
		}
		off_bytes += bytes - true_bytes;
		off_blocks += blocks - BLOCKS;
		off_live += live - true_live;
		off2_bytes += pow(bytes - true_bytes, 2);
		off2_blocks += pow(blocks - BLOCKS, 2);
		sum_var_bytes += var_bytes;
		sum_var_blocks += var_blocks;
		sum_var_live += var_live;
	}
	assert_true(fabs(off_bytes) < 4 * sqrt(sum_var_bytes));
	assert_true(fabs(off_blocks) < 4 * sqrt(sum_var_blocks));
	assert_true(fabs(off_live) < 4 * sqrt(sum_var_live));
	/* These are approximately sums of squares of RUNS standard normal numbers. */
	assert_true(fabs(off2_bytes / sum_var_bytes - 1) < 5 * sqrt(2.0 / RUNS));
	assert_true(fabs(off2_blocks / sum_var_blocks - 1) < 5 * sqrt(2.0 / RUNS));
}

/* As layout_budget(). */
static void fill_part(uint32_t *part)
{
	for (int k = 1; k <= (int)MPR_WEIGHT_MAX; k++)
		part[k] = (uint32_t)llround(ldexp(-log1p(-ldexp(1, -k)), 32));
}

/* Return: k of a block within a budget, or AG_NOT_CHOSEN; the next countdown has @level. */
static uint32_t weigh(struct ss_local *s, const uint32_t *part, uint64_t size, uint32_t level)
{
	uint32_t k;

	s->left = (int64_t)((uint64_t)s->left - size);
	if (s->left >= 0)
		return AG_NOT_CHOSEN;
	k = ag_countdown_weigh(part, s, size);
	ag_countdown_restart(s, level);
	return k;
}

/* A block of each size is recorded as often as its weight says, at every level. */
static void weights_are_what_they_say(void **state)
{
	static const uint64_t size[] = {1, 2, 16, 23, 100, 1000, 4097, 60000, 1000000};
	uint32_t part[MPR_WEIGHT_MAX + 1];
	struct ss_local s = begun(4);

	(void)state;
	fill_part(part);
	for (uint32_t level = SS_LEVEL_MIN; level <= SS_LEVEL_MAX; level++) {
		ag_countdown_restart(&s, level);
		for (int z = 0; z < 9; z++) {
			double n = 300000, sum = 0, hits = 0, weight = 0;

			for (int i = 0; i < (int)n; i++) {
				uint32_t k = weigh(&s, part, size[z], level);

				if (k == AG_NOT_CHOSEN)
					continue;
				assert_true(!hits || weight == ldexp(1, (int)k));
				weight = ldexp(1, (int)k);
				sum += weight;
				hits++;
			}
			/* Blocks of more than the reach are all recorded. */
			if (size[z] > (uint64_t)ag_countdown_reach(level))
				assert_true(hits == n && weight == 1);
			if (hits)
				assert_true(fabs(sum / n - 1) < 5 * sqrt((weight - 1) / n) + 1e-9);
			/* Half of what sampling by bytes can record, or more. */
			if (n * (double)size[z] > 100 * ldexp(1, (int)level))
				assert_true(1 / weight >=
					    -expm1(-(double)size[z] / ldexp(1, (int)level)) / 2);
		}
	}
}

/* Level 0 records everything; afterwards a countdown begins. */
static void exact_within_a_budget(void **state)
{
	uint32_t part[MPR_WEIGHT_MAX + 1];
	struct ss_local s = begun(5);

	(void)state;
	fill_part(part);
	ag_countdown_restart(&s, 0);
	for (uint64_t size = 0; size < 3000; size++) {
		assert_int_equal(weigh(&s, part, size, 0), 0);
		assert_int_equal(s.left, s.drawn);
	}
	assert_int_equal(weigh(&s, part, 1, SS_LEVEL_MAX), 0);
	assert_true(s.left >= 0);
}

/* Sums of weights are the true sums, and their standard errors are those that were estimated, while
 * the level changes with what was recorded before. */
static void budget_is_unbiased(void **state)
{
	double off_blocks = 0, off_live = 0, off2_blocks = 0, off2_live = 0;
	double sum_var_blocks = 0, sum_var_live = 0;
	uint32_t part[MPR_WEIGHT_MAX + 1];

	(void)state;
	fill_part(part);
	for (uint64_t run = 0; run < RUNS; run++) {
		struct ss_local s = begun(1000 + run);
		double blocks = 0, live = 0, var_blocks = 0, var_live = 0, true_live = 0;
		uint64_t x = run;
		uint32_t level = 12;

		ag_countdown_restart(&s, 12);
		for (int i = 0; i < BLOCKS; i++) {
			uint64_t size;
			struct estimate e;
			uint32_t k;

			x = x * 6364136223846793005ull + 1442695040888963407ull;
			size = x >> 60 ? 1 + (x >> 40) % 500 : 1 + (x >> 40) % 50000;
			if (i % 3 == 0)
				true_live += (double)size;
			k = weigh(&s, part, size, level);
			if (k == AG_NOT_CHOSEN)
				continue;
			/* More samples make the next ones rarer, as a budget does. */
			level = level < 16 ? level + 1 : x >> 50 & 1 ? 6 : 9;
			e = estimate_block(0, size, k, 0);
			blocks += (double)e.blocks;
			var_blocks += e.variance_blocks;
			if (i % 3 == 0) {
				live += (double)e.bytes;
				var_live += e.variance_bytes;
			}
		}
		off_blocks += blocks - BLOCKS;
		off_live += live - true_live;
		off2_blocks += pow(blocks - BLOCKS, 2);
		off2_live += pow(live - true_live, 2);
		sum_var_blocks += var_blocks;
		sum_var_live += var_live;
	}
	assert_true(fabs(off_blocks) < 4 * sqrt(sum_var_blocks));
	assert_true(fabs(off_live) < 4 * sqrt(sum_var_live));
	assert_true(fabs(off2_blocks / sum_var_blocks - 1) < 0.5);
	assert_true(fabs(off2_live / sum_var_live - 1) < 0.5);
}

static void all_blocks_recorded_count_once(void **state)
{
	struct estimate e = estimate_block(0, 4711, 0, 5);

	(void)state;
	assert_true(e.blocks == 1 && e.bytes == 4711 && e.variance_bytes == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(draws_are_exponential),
	    cmocka_unit_test(whole_range_of_intervals),
	    cmocka_unit_test(a_block_is_sampled_by_its_size),
	    cmocka_unit_test(estimates_are_unbiased),
	    cmocka_unit_test(weights_are_what_they_say),
	    cmocka_unit_test(exact_within_a_budget),
	    cmocka_unit_test(budget_is_unbiased),
	    cmocka_unit_test(all_blocks_recorded_count_once),
	};

	return cmocka_run_group_tests_name("sampling by bytes", tests, NULL, NULL);
}
