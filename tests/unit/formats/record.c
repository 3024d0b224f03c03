/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that make words of structures, and the reverse, are right in any byte order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "formats/record.h"

static void test_head(void **state)
{
	struct mpr_header h = {MPR_REALLOC_END, 0xfff3, 48}, back;
	uint64_t word = mpr_head(h.type, h.misc, h.size);

	(void)state;
	memcpy(&back, &word, sizeof(back));
	assert_memory_equal(&h, &back, sizeof(h));
	assert_int_equal(mpr_head_size(word), 48);
	assert_int_equal(mpr_head_type(word), MPR_REALLOC_END);
}

static void test_pair(void **state)
{
	uint32_t two[2] = {0x01020304, 0xf5060708};
	uint64_t word;

	(void)state;
	memcpy(&word, two, sizeof(word));
	assert_true(pair_word(two[0], two[1]) == word);
	assert_int_equal(pair_first(word), two[0]);
	assert_int_equal(pair_second(word), two[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_head),
	    cmocka_unit_test(test_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
