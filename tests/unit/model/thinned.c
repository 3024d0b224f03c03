/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Periods of thinning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "model/sums/thinned.h"

#define MS 1000000ull

static void gaps_separate(void **state)
{
	struct thinned t = {0};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		thinned_add(&t, i * MS, 2);
	thinned_add(&t, 5000 * MS, 5);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.period[0].to_ns, 99 * MS);
	assert_int_equal(t.period[0].recorded, 100);
	assert_int_equal(t.period[0].represented, 400);
	assert_int_equal(t.period[0].most, 2);
	assert_int_equal(t.period[1].represented, 32);
}

/* The number is limited, the sums are not. */
static void many(void **state)
{
	struct thinned t = {0};
	uint64_t recorded = 0, represented = 0;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		thinned_add(&t, i * 1000 * MS, 1);
	assert_in_range(t.n, 1, THINNED_PERIODS);
	for (uint32_t i = 0; i < t.n; i++) {
		recorded += t.period[i].recorded;
		represented += t.period[i].represented;
		assert_true(!i || t.period[i].from_ns > t.period[i - 1].to_ns);
	}
	assert_int_equal(recorded, 100000);
	assert_int_equal(represented, 200000);
}

/* A damaged recording can have any times. */
static void any_times(void **state)
{
	struct thinned t = {0};
	uint64_t recorded = 0, x = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		thinned_add(&t, i % 3 ? x : UINT64_MAX - x, 15);
	}
	assert_in_range(t.n, 1, THINNED_PERIODS);
	for (uint32_t i = 0; i < t.n; i++)
		recorded += t.period[i].recorded;
	assert_int_equal(recorded, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gaps_separate),
	    cmocka_unit_test(many),
	    cmocka_unit_test(any_times),
	};

	return cmocka_run_group_tests_name("periods of thinning", tests, NULL, NULL);
}
