/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names that a sender proposes never lead out of the folder, nor to a hidden file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "stream/store.h"

static void test_names(void **state)
{
	static const struct {
		const char *name, *clean;
	} cases[] = {
	    {"web1-nginx-12.memprof", "web1-nginx-12.memprof"},
	    {"/etc/passwd", "passwd"},
	    {"../../x", "x"},
	    {"..", "_."},
	    {".", "_"},
	    {".hidden", "_hidden"},
	    {"a/", "recording.memprof"},
	    {"", "recording.memprof"},
	    {"a b\n\033[2J\xff", "a_b___2J_"},
	    {"-rf", "-rf"},
	    {"a+b@c_d-e.f", "a+b@c_d-e.f"},
	};
	char clean[WIRE_NAME + 1], longest[400];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_clean_name((const uint8_t *)cases[i].name, strlen(cases[i].name), clean);
		assert_string_equal(clean, cases[i].clean);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	store_clean_name((const uint8_t *)longest, strlen(longest), clean);
	assert_int_equal(strlen(clean), WIRE_NAME);
	store_clean_name((const uint8_t *)"n\0ul", 4, clean);
	assert_string_equal(clean, "n_ul");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests_name("stream/store", tests, NULL, NULL);
}
