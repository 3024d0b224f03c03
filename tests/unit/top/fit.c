/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Texts fit into columns: characters of two, one and no columns, of several bytes, and bad ones. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "top/fit.h"

#define WIDE_HAN  "\u6f22"  /* two columns */
#define COMBINING "e\u0301" /* one column, two characters */

static int setup(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

static void test_columns(void **state)
{
	(void)state;
	assert_int_equal(fit_columns(""), 0);
	assert_int_equal(fit_columns("abc"), 3);
	assert_int_equal(fit_columns("gr\u00f6\u00dfe"), 5);
	assert_int_equal(fit_columns(WIDE_HAN WIDE_HAN), 4);
	assert_int_equal(fit_columns(COMBINING), 1);
	assert_int_equal(fit_columns("a\xff"), 2);
}

static void check_wide(const char *text, uint32_t columns, const wchar_t *want, uint32_t width)
{
	wchar_t out[8];

	assert_int_equal(fit_wide(text, columns, out, 8), width);
	assert_int_equal(wcscmp(out, want), 0);
}

static void test_wide(void **state)
{
	(void)state;
	check_wide("abc", 3, L"abc", 3);
	check_wide("abc", 2, L"ab", 2);
	check_wide("abc", 0, L"", 0);
	/* Half of a wide character is not shown. */
	check_wide("a" WIDE_HAN, 2, L"a", 1);
	check_wide("a" WIDE_HAN, 3, L"a\u6f22", 3);
	check_wide("a\xff"
		   "b",
		   3, L"a?b", 3);
	/* As much as there are elements for. */
	check_wide("abcdefghijk", 20, L"abcdefg", 7);
}

static void test_locale_without_it(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	check_wide("gr\u00f6\u00dfe", 10, L"gr??e", 5);
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

static void test_tail(void **state)
{
	(void)state;
	assert_string_equal(fit_tail("abcdef", 2), "ef");
	assert_string_equal(fit_tail("ab", 5), "ab");
	assert_string_equal(fit_tail("a" WIDE_HAN "b", 2), "b");
	/* The mark goes with its letter. */
	assert_string_equal(fit_tail("x" COMBINING "y", 1), "y");
	assert_string_equal(fit_tail("x" COMBINING "y", 2), COMBINING "y");
}

static void test_middle(void **state)
{
	char buf[FIT_SIZE];
	const char *name = "name";

	(void)state;
	assert_ptr_equal(fit_middle(name, 4, buf), name);
	assert_string_equal(fit_middle("abcdefghij", 6, buf), "ab..ij");
	assert_string_equal(fit_middle("abcdefghij", 7, buf), "ab..hij");
	assert_string_equal(fit_middle("abcdefghij", 2, buf), "ab");
	assert_string_equal(fit_middle("abcdefghij", 0, buf), "");
	assert_string_equal(fit_middle("\u00f6\u00f6\u00f6\u00f6\u00f6", 4, buf), "\u00f6..\u00f6");
	/* A half would fit on either side, but there is none. */
	assert_string_equal(fit_middle(WIDE_HAN WIDE_HAN WIDE_HAN WIDE_HAN, 5, buf), ".." WIDE_HAN);
}

static void test_long_names(void **state)
{
	static char name[3 * FIT_SIZE];
	char buf[FIT_SIZE];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	assert_true(strlen(fit_middle(name, 2 * FIT_SIZE, buf)) < FIT_SIZE);
	assert_non_null(strstr(buf, ".."));
}

static void test_parts(void **state)
{
	static const struct {
		uint32_t columns;
		const char *want;
	} e[] = {{30, "always  long text  last"},
		 {23, "always  long text  last"},
		 {22, "always  long text"},
		 {17, "always  long text"},
		 {16, "always  text"},
		 {12, "always  text"},
		 {11, "always"},
		 {3, "always"}};

	(void)state;
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		struct fit_part p[] = {{"always", NULL, 0},
				       {"long text", "text", 1},
				       {"", NULL, 3},
				       {"last", NULL, 2}};
		char buf[FIT_SIZE];

		assert_string_equal(fit_parts(p, 4, e[i].columns, buf), e[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_columns),
	    cmocka_unit_test(test_wide),
	    cmocka_unit_test(test_tail),
	    cmocka_unit_test(test_middle),
	    cmocka_unit_test(test_long_names),
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_locale_without_it),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
