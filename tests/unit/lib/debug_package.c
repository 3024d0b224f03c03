/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/debug_package.h"

static void write_list(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void remove_list(const char *folder, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static void owners(void **state)
{
	char folder[] = "/tmp/memprof-unit-XXXXXX";
	struct package_query q[] = {{.path = "/usr/bin/redis-check-rdb"},
				    {.path = "/usr/lib/libc.so.6"},
				    {.path = "/usr/bin/redis"},
				    {.path = "/usr/local/bin/own"},
				    {.path = "/usr/bin/last"}};

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_list(folder, "redis-tools.list",
		   "/.\n/usr\n/usr/bin\n/usr/bin/redis-check-rdb\n/usr/bin/last\n");
	write_list(folder, "libc6:amd64.list", "/.\n/lib\n/lib/libc.so.6\n");
	write_list(folder, "redis-tools.md5sums", "\n/usr/local/bin/own\n");
	write_list(folder, "empty.list", "");
	assert_true(packages_find(folder, q, 5));
	assert_string_equal(q[0].owner, "redis-tools");
	assert_string_equal(q[1].owner, "libc6"); /* by the name that the folder had before */
	assert_string_equal(q[2].owner, "");	  /* only a part of a path */
	assert_string_equal(q[3].owner, "");
	assert_string_equal(q[4].owner, "redis-tools");
	remove_list(folder, "redis-tools.list");
	remove_list(folder, "libc6:amd64.list");
	remove_list(folder, "redis-tools.md5sums");
	remove_list(folder, "empty.list");
	assert_int_equal(rmdir(folder), 0);
	assert_false(packages_find(folder, q, 5));
	assert_string_equal(q[0].owner, "");
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
