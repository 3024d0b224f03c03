/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/human.h"

static void counts(void **state)
{
	static const struct {
		uint64_t n;
		const char *noun, *text;
	} c[] = {{0, "block", "0 blocks"},
		 {1, "block", "1 block"},
		 {2, "page fault", "2 page faults"},
		 {1234567, "event", "1,234,567 events"},
		 {1, "copy", "1 copy"},
		 {3, "copy", "3 copies"},
		 {1, "whole batch", "1 whole batch"},
		 {2, "whole batch", "2 whole batches"},
		 {1, "process", "1 process"},
		 {0, "process", "0 processes"},
		 {UINT64_MAX, "abcdefghijklmnopqrstuvwxy leak",
		  "18,446,744,073,709,551,615 abcdefghijklmnopqrstuvwxy leaks"}};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_string_equal(counted(c[i].n, c[i].noun), c[i].text);
}

/* Eight results can be used at a time. */
static void eight(void **state)
{
	const char *text[8];

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		text[i] = counted(i, "block");
	assert_string_equal(text[0], "0 blocks");
	assert_string_equal(text[1], "1 block");
	assert_string_equal(text[7], "7 blocks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(eight)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
