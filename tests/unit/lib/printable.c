/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/printable.h"

/* Printable text of any length is returned as it is, not copied. */
static void text(void **state)
{
	static const char *const c[] = {"",
					"main",
					"std::vector<int>::push_back(int&&)",
					"a \\x1b b",
					"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
					"~\xc2\xa0"};
	char longer[3 * PRINTABLE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_ptr_equal(printable(c[i]), c[i]);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_ptr_equal(printable(longer), longer);
}

static void escaped(void **state)
{
	static const struct {
		const char *text, *shown;
	} c[] = {{"\033[31mred\a", "\\x1b[31mred\\x07"},
		 {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
		 {"\xc2\x9b"
		  "2J",
		  "\\xc2\\x9b2J"},  /* CSI of ISO 6429 as UTF-8 */
		 {"\x9b", "\\x9b"}, /* and as a byte */
		 {"a\xe2\x80\xae"
		  "b",
		  "a\\xe2\\x80\\xaeb"}, /* right-to-left override */
		 {"a\xe2\x80\xa8"
		  "b",
		  "a\\xe2\\x80\\xa8b"}, /* line separator */
		 {"\xc3", "\\xc3"},
		 {"\xc3\xa9\xff", "\xc3\xa9\\xff"}};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_string_equal(printable(c[i].text), c[i].shown);
}

/* Truncated text never ends in part of an escape or of a character, and nothing is written after
 * the buffer. */
static void cut(void **state)
{
	char buf[16];

	(void)state;
	for (size_t size = 1; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		assert_ptr_equal(printable_text("\033\xc3\xa9\n", buf, size), buf);
		assert_int_equal(strlen(buf), size < 5 ? 0 : size < 7 ? 4 : size < 11 ? 6 : 10);
		assert_int_equal(buf[size], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(text), cmocka_unit_test(escaped),
					   cmocka_unit_test(cut)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
