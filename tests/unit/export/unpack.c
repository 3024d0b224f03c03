/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The path to which a binary is written never leaves the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "export/unpack.h"

static void paths(void **state)
{
	static const struct {
		const char *from, *to; /* NULL: refused */
	} path[] = {
	    {"/usr/lib/libc.so.6", "usr/lib/libc.so.6"},
	    {"//a/./b//c/.", "a/b/c"},
	    {"a", "a"},
	    {"/a (deleted)", "a (deleted)"},
	    {"/...", "..."},
	    {"/..a/b..", "..a/b.."},
	    {"", NULL},
	    {"/", NULL},
	    {"/.", NULL},
	    {"..", NULL},
	    {"/a/..", NULL},
	    {"/a/../b", NULL},
	    {"../a", NULL},
	    {"/thirteen/byte", NULL},
	};
	char out[12 + 1] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		size_t room = path[i].to ? 64 : sizeof(out);
		char large[64] = "";
		char *to = path[i].to ? large : out;

		assert_int_equal(unpack_path(path[i].from, to, room), path[i].to != NULL);
		if (path[i].to)
			assert_string_equal(to, path[i].to);
	}
	assert_true(unpack_path("/twelve/bytes", out, sizeof(out)));
	assert_string_equal(out, "twelve/bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(paths)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
