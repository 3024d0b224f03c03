/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Typing into a prompt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "top/prompt.h"

static void test_characters(void **state)
{
	static const uint32_t typed[] = {'a', 0xf6, 0x6f22, 0x1f600};
	struct prompt p;

	(void)state;
	prompt_begin(&p, PROMPT_MARK, "");
	for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++)
		prompt_add(&p, typed[i]);
	assert_string_equal(p.text, "a\u00f6\u6f22\U0001f600");
	prompt_backspace(&p);
	prompt_backspace(&p);
	assert_string_equal(p.text, "a\u00f6");
	prompt_backspace(&p);
	prompt_backspace(&p);
	prompt_backspace(&p);
	assert_string_equal(p.text, "");
}

static void test_no_control_characters(void **state)
{
	static const uint32_t typed[] = {0, 1, 0x1b, 0x7f, 0x9b, 0x202e, 0xd800, 0x110000, '\n'};
	struct prompt p;

	(void)state;
	prompt_begin(&p, PROMPT_FILTER, "x");
	for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++)
		prompt_add(&p, typed[i]);
	assert_string_equal(p.text, "x");
}

static void test_full(void **state)
{
	struct prompt p;

	(void)state;
	prompt_begin(&p, PROMPT_REPORT, "");
	for (int i = 0; i < 2 * PROMPT_SIZE; i++)
		prompt_add(&p, 0xf6);
	/* Whole characters only. */
	assert_int_equal(strlen(p.text), (PROMPT_SIZE - 1) / 2 * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_characters),
					   cmocka_unit_test(test_no_control_characters),
					   cmocka_unit_test(test_full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
