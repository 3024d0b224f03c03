/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers of the table, and how they become shorter in narrow columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "top/cell.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static void test_bytes(void **state)
{
	char buf[CELL];

	(void)state;
	assert_string_equal(cell_bytes(0, false, 10, buf), "0 B");
	assert_string_equal(cell_bytes(0, true, 10, buf), "0 B");
	assert_string_equal(cell_bytes(1023, false, 10, buf), "1023 B");
	assert_string_equal(cell_bytes(1536, false, 10, buf), "1.5 KiB");
	assert_string_equal(cell_bytes(1536, true, 10, buf), "~1.5 KiB");
	assert_string_equal(cell_bytes(1023 * MIB + MIB / 2, false, 10, buf), "1023.5 MiB");
	assert_string_equal(cell_bytes(1023 * MIB + MIB / 2, true, 10, buf), "~1023 MiB");
	assert_string_equal(cell_bytes(1023 * MIB + MIB / 2, true, 6, buf), "~1023M");
}

static void test_change(void **state)
{
	char buf[CELL];

	(void)state;
	assert_string_equal(cell_change(0, false, 11, buf), "0 B");
	assert_string_equal(cell_change(0.3, true, 11, buf), "0 B");
	assert_string_equal(cell_change(-0.6, false, 11, buf), "-1 B");
	assert_string_equal(cell_change(2 * KIB, false, 11, buf), "+2.0 KiB");
	assert_string_equal(cell_change(-2.0 * KIB, true, 11, buf), "~-2.0 KiB");
}

static void test_count(void **state)
{
	char buf[CELL];

	(void)state;
	assert_string_equal(cell_count(1234567, false, 9, buf), "1,234,567");
	assert_string_equal(cell_count(1234567, true, 9, buf), "~1.2 M");
	assert_string_equal(cell_count(12345678, false, 9, buf), "12.3 M");
	assert_string_equal(cell_count(UINT64_MAX, false, 9, buf), "18.4 E");
}

static void test_rate(void **state)
{
	char buf[CELL];

	(void)state;
	assert_string_equal(cell_rate(0, true, 9, buf), "0");
	assert_string_equal(cell_rate(-1, false, 9, buf), "0");
	assert_string_equal(cell_rate(0.25, false, 9, buf), "0.2");
	assert_string_equal(cell_rate(9.96, false, 9, buf), "10.0");
	assert_string_equal(cell_rate(1234.5, true, 9, buf), "~1,235");
}

static void test_share_and_time(void **state)
{
	char buf[CELL];

	(void)state;
	assert_string_equal(cell_share(-1, buf), "-");
	assert_string_equal(cell_share(0, buf), "0%");
	assert_string_equal(cell_share(1, buf), "100%");
	assert_string_equal(cell_time(83000000000ull, buf), "0:01:23");
	assert_string_equal(cell_time(360000ull * 1000000000u, buf), "100:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bytes),	   cmocka_unit_test(test_change),
	    cmocka_unit_test(test_count),	   cmocka_unit_test(test_rate),
	    cmocka_unit_test(test_share_and_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
