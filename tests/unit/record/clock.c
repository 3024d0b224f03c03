/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Times must not go back when the rate of the processor's counter becomes better known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "record/clock.h"

#define TICKS0	 1000000u
#define NS0	 5000u
#define PER_NS	 2u /* ticks */
#define SECOND	 1000000000u
#define BATCHES	 100u /* a second */
#define FIRST_NS 20000000u

/* A clock after a calibration of 20 ms that was wrong by @error_ns. */
static struct clock started(int64_t error_ns)
{
	struct clock c = {.ticks0 = TICKS0, .ns0 = NS0, .from_ticks = TICKS0};

	clock_correct(&c, TICKS0, TICKS0 + FIRST_NS * PER_NS, NS0 + FIRST_NS + (uint64_t)error_ns);
	return c;
}

static uint64_t ticks_at(uint64_t ns)
{
	return TICKS0 + ns * PER_NS;
}

/* Converts times as the recorder does: in batches that end @late_ns before now, of several ticks after
 * one another at the ends.  Return: the error at the end of the last second. */
static int64_t run(struct clock *c, uint32_t seconds, uint64_t late_ns)
{
	uint64_t last = 0, until = 0, at = 0;

	for (uint32_t i = 1; i <= seconds * BATCHES; i++) {
		uint64_t now = FIRST_NS + i * (uint64_t)(SECOND / BATCHES), begin = until;

		until = now - late_ns;
		for (int k = 0; k < 4; k++) {
			uint64_t ticks =
			    k < 2 ? ticks_at(begin) + (uint64_t)k + 1 : ticks_at(until) - (k == 2);

			at = clock_ns(c, ticks);
			assert_true(at >= last);
			last = at;
		}
		if (!(i % BATCHES))
			clock_correct(c, ticks_at(until), ticks_at(now), NS0 + now);
	}
	return (int64_t)at - (int64_t)until;
}

static void test_never_back(void **state)
{
	static const int64_t error_ns[] = {0, 3000, -3000, 1000000, -1000000, 15000000, -15000000};
	static const uint64_t late_ns[] = {0, 1000000, 19000000};

	(void)state;
	for (size_t i = 0; i < sizeof(error_ns) / sizeof(error_ns[0]); i++) {
		for (size_t k = 0; k < sizeof(late_ns) / sizeof(late_ns[0]); k++) {
			struct clock c = started(error_ns[i]);

			assert_true(llabs(run(&c, 20, late_ns[k])) < 1000);
		}
	}
}

/* At the end, all ticks have been converted, also later ones than now. */
static void test_end(void **state)
{
	struct clock c = started(3000);
	uint64_t now = SECOND, before = clock_ns(&c, ticks_at(now));

	(void)state;
	clock_correct(&c, UINT64_MAX, ticks_at(now), NS0 + now);
	assert_int_equal(clock_ns(&c, ticks_at(now)), before);
	assert_true(clock_ns(&c, ticks_at(now) + 1) >= before);
}

static void test_before_start(void **state)
{
	struct clock c = started(0);

	(void)state;
	assert_int_equal(clock_ns(&c, 0), 0);
	assert_int_equal(clock_ns(&c, TICKS0), 0);
	assert_int_equal(clock_ns(&c, TICKS0 + 100 * PER_NS), 100);
	clock_correct(&c, 0, TICKS0 - 1, NS0); /* ticks that went back say nothing */
	assert_int_equal(clock_ns(&c, TICKS0 + 100 * PER_NS), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_back),
					   cmocka_unit_test(test_end),
					   cmocka_unit_test(test_before_start)};

	return cmocka_run_group_tests_name("record/clock", tests, NULL, NULL);
}
