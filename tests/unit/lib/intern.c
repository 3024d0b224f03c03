/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "lib/intern.h"
#include "lib/utf8.h"

#define MANY 20000u

/* Equal pairs get the same id, whatever was interned between them; different pairs never do. */
static void pairs(void **state)
{
	struct intern *t = intern_new();
	bool fresh;

	(void)state;
	assert_non_null(t);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(intern_pair(t, i / 100, i % 100, &fresh), i + 1);
		assert_true(fresh);
		assert_int_equal(intern_pair(t, i / 200, i / 2 % 100, &fresh),
				 i / 200 * 100 + i / 2 % 100 + 1);
		assert_false(fresh);
	}
	assert_int_equal(intern_pair(t, UINT64_MAX, 0, &fresh), MANY + 1);
	assert_int_equal(intern_pair(t, 0, UINT64_MAX, NULL), MANY + 2);
	assert_int_equal(intern_pair(t, UINT64_MAX, 0, &fresh), MANY + 1);
	assert_false(fresh);
	intern_free(t);
}

static void texts(void **state)
{
	struct intern *t = intern_new();
	char text[32];
	bool fresh;

	(void)state;
	assert_non_null(t);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		assert_int_equal(intern_text(t, text, &fresh), i + 1);
		assert_true(fresh);
	}
	/* The table has copies of the texts. */
	strcpy(text, "overwritten");
	assert_int_equal(intern_text(t, "name 7", &fresh), 8);
	assert_false(fresh);
	assert_int_equal(intern_text(t, "name 19999", &fresh), MANY);
	assert_false(fresh);
	intern_free(t);
}

/* Invalid by RFC 3629: no sequence, too long for its value, a surrogate, or above U+10FFFF. */
static void utf8(void **state)
{
	static const struct {
		const char *text, *clean;
	} c[] = {{"plain", "plain"},
		 {"", ""},
		 {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		 {"a\xff\xfe z", "a?? z"},
		 {"\xc3", "?"},
		 {"\xe2\x82", "??"},
		 {"\xc0\xaf", "??"},
		 {"\xe0\x80\xaf", "???"},
		 {"\xed\xa0\x80", "???"},
		 {"\xf4\x90\x80\x80", "????"},
		 {"\xf0\x8f\xbf\xbf", "????"},
		 {"\x80x\xbf", "?x?"},
		 {"\xc3\x28", "?("}};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		strcpy(buf, c[i].text);
		utf8_clean(buf);
		assert_string_equal(buf, c[i].clean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(pairs), cmocka_unit_test(texts),
					   cmocka_unit_test(utf8)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
