/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which texts are accepted as numbers, and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "model/filter/amount.h"

#define S  1000000000ull
#define NO UINT64_MAX

struct example {
	const char *text;
	uint64_t want; /* NO: must be refused */
};

static void check(bool (*read)(const char *, uint64_t *), const struct example *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = NO;

		if (read(e[i].text, &v) != (e[i].want != NO) || v != e[i].want)
			fail_msg("'%s' is %llu", e[i].text, (unsigned long long)v);
	}
}

#define CHECK(read, examples) check(read, examples, sizeof(examples) / sizeof((examples)[0]))

static void test_integer(void **state)
{
	static const struct example e[] = {{"0", 0},
					   {"42", 42},
					   {"0x2a", 42},
					   {"0XfF", 255},
					   {"18446744073709551614", NO - 1},
					   {"", NO},
					   {"-1", NO},
					   {"+1", NO},
					   {" 1", NO},
					   {"1 ", NO},
					   {"1.5", NO},
					   {"0x", NO},
					   {"0xg", NO},
					   {"1k", NO},
					   {"18446744073709551616", NO},
					   {"0x10000000000000000", NO}};

	(void)state;
	CHECK(amount_integer, e);
}

static void test_bytes(void **state)
{
	static const struct example e[] = {
	    {"0", 0},	      {"100", 100},	 {"1k", 1024},	     {"1K", 1024},
	    {"64KiB", 65536}, {"1.5M", 1572864}, {"2G", 2ull << 30}, {"1T", 1ull << 40},
	    {"7B", 7},	      {"0.5k", 512},	 {"", NO},	     {"k", NO},
	    {"1.5", NO},      {"1kk", NO},	 {"1P", NO},	     {"1.", NO},
	    {".5k", NO},      {"-1k", NO},	 {"99999999T", NO},  {"1e3", NO}};

	(void)state;
	CHECK(amount_bytes, e);
}

static void test_duration(void **state)
{
	static const struct example e[] = {{"0", 0},
					   {"90", 90 * S},
					   {"1.5s", 3 * S / 2},
					   {"4h3m2s", (4 * 3600 + 3 * 60 + 2) * S},
					   {"100ms", S / 10},
					   {"7us", 7000},
					   {"3ns", 3},
					   {"1d", 86400 * S},
					   {"1m30", 90 * S},
					   {"2s1ns", 2 * S + 1},
					   {"", NO},
					   {"s", NO},
					   {"1x", NO},
					   {"1s ", NO},
					   {"-1s", NO},
					   {"10%", NO},
					   {"1..5s", NO},
					   {"300000d", NO},
					   {"213503d1000000000h", NO}};

	(void)state;
	CHECK(amount_duration, e);
}

static void test_time(void **state)
{
	struct amount a;

	(void)state;
	assert_true(amount_time("50%", &a));
	assert_int_equal(amount_ns(&a, 7, 10 * S, false, 0), 5 * S);
	assert_true(amount_time("12.5%", &a));
	assert_int_equal(amount_ns(&a, 7, 8 * S, true, 0), S);
	assert_true(amount_time("250%", &a));
	assert_int_equal(amount_ns(&a, 7, 2 * S, false, 0), 5 * S);
	assert_true(amount_time("90", &a));
	assert_int_equal(amount_ns(&a, 7, S, false, 0), 90 * S);
	/* Unix time 2 s after the start; as an upper bound it means the end of the millisecond. */
	assert_true(amount_time("1700000002000", &a));
	assert_int_equal(amount_ns(&a, 1700000000 * S, S, false, 0), 2 * S);
	assert_int_equal(amount_ns(&a, 1700000000 * S, S, true, 0), 2 * S + 999999);
	assert_int_equal(amount_ns(&a, 1800000000 * S, S, true, 0), 0);
	assert_false(amount_time("50 %", &a));
	assert_false(amount_time("%", &a));
	assert_false(amount_time("-5%", &a));
	assert_false(amount_time("yesterday", &a));
	a = (struct amount){0};
	assert_int_equal(amount_ns(&a, 7, S, false, 42), 42);
}

static void test_count(void **state)
{
	struct amount a;

	(void)state;
	assert_true(amount_count_or_percent("10", &a));
	assert_int_equal(a.unit, AMOUNT_PLAIN);
	assert_int_equal(a.n, 10);
	assert_true(amount_count_or_percent("10%", &a));
	assert_int_equal(a.unit, AMOUNT_PERCENT);
	assert_false(amount_count_or_percent("1.5", &a));
	assert_false(amount_count_or_percent("10s", &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_integer), cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_duration), cmocka_unit_test(test_time),
	    cmocka_unit_test(test_count)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
