/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The classes of lifetimes: 1, 2, 5, 10 ... us to 10,000 s, without gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "formats/lifetimes.h"

static void test_limits(void **state)
{
	uint64_t ns = 1000;

	(void)state;
	assert_int_equal(lifetime_least(0), 0);
	for (uint32_t i = 1; i < LIFETIME_CLASSES; i++) {
		assert_int_equal(lifetime_least(i), ns);
		assert_int_equal(lifetime_class(ns - 1), i - 1);
		assert_int_equal(lifetime_class(ns), i);
		assert_int_equal(lifetime_class(ns + 1), i);
		ns = i % 3 == 2 ? ns / 2 * 5 : ns * 2;
	}
	assert_int_equal(lifetime_least(LIFETIME_CLASSES), UINT64_MAX);
	assert_int_equal(lifetime_class(0), 0);
	assert_int_equal(lifetime_class(UINT64_MAX), LIFETIME_CLASSES - 1);
}

/* Each lifetime is in the class whose limits are around it. */
static void test_all_powers(void **state)
{
	(void)state;
	for (uint32_t bit = 0; bit < 64; bit++) {
		for (int64_t d = -3; d <= 3; d++) {
			uint64_t ns = (1ull << bit) + (uint64_t)d;
			uint32_t i = lifetime_class(ns);

			assert_true(lifetime_least(i) <= ns);
			assert_true(i == LIFETIME_CLASSES - 1 || ns < lifetime_least(i + 1));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
					   cmocka_unit_test(test_all_powers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
