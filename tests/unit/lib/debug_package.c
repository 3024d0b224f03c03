/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/debug_package.h"

static void owners(void **state)
{
	struct package_query q[] = {{.path = "/usr/bin/env"},	    {.path = "/usr/sbin/ldconfig"},
				    {.path = "/usr/bin/en"},	    {.path = "/usr/bin/en?"},
				    {.path = "/usr/local/bin/own"}, {.path = "relative"},
				    {.path = "/usr/bin/perl"}};

	(void)state;
	assert_true(packages_find(q, 7));
	assert_string_equal(q[0].owner, "coreutils");
	assert_string_equal(q[1].owner, "libc-bin"); /* by the name that the folder had before */
	assert_string_equal(q[2].owner, "");	     /* only a part of a path */
	assert_string_equal(q[3].owner, "");	     /* not taken for a pattern */
	assert_string_equal(q[4].owner, "");
	assert_string_equal(q[5].owner, "");
	assert_string_equal(q[6].owner, "perl-base");
}

static void names(void **state)
{
	char name[32], narrow[8];

	(void)state;
	assert_string_equal(package_with_debug("redis-tools", name, sizeof(name)),
			    "redis-tools-dbgsym");
	assert_string_equal(package_with_debug("libc6", name, sizeof(name)), "libc6-dbg");
	assert_string_equal(package_with_debug("libssl3", narrow, sizeof(narrow)), "libssl3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(owners), cmocka_unit_test(names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
