/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "attach/proc/limits.h"

static const char text[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max address space         1073741824           unlimited            bytes     \n";

static void lines(void **state)
{
	(void)state;
	assert_true(limits_parse(text, "Max address space") == 1073741824);
	assert_true(limits_parse(text, "Max cpu time") == NO_LIMIT);
	assert_true(limits_parse(text, "Max nothing") == NO_LIMIT);
	assert_true(limits_parse("", "Max cpu time") == NO_LIMIT);
}

static void cgroups(void **state)
{
	char path[32];

	(void)state;
	assert_int_equal(limits_cgroup("0::/a/b\n", path, sizeof(path)), 2);
	assert_string_equal(path, "/a/b");
	assert_int_equal(limits_cgroup("9:cpu:/x\n4:memory:/m\n0::/u\n", path, sizeof(path)), 1);
	assert_string_equal(path, "/m");
	assert_int_equal(limits_cgroup("0::/u\n4:memory:/m\n", path, sizeof(path)), 1);
	assert_string_equal(path, "/m");
	assert_int_equal(limits_cgroup("9:cpu:/x\n", path, sizeof(path)), 0);
	assert_int_equal(limits_cgroup("nonsense\n:\n::\n", path, sizeof(path)), 0);
	assert_int_equal(
	    limits_cgroup("0::/a/path/that/does/not/fit/into/the/room\n", path, sizeof(path)), 0);
}

static void of_ourselves(void **state)
{
	struct limits l;

	(void)state;
	assert_int_equal(limits_read(getpid(), &l), 0);
	assert_true(l.cgroup == NO_LIMIT || l.shared_cgroup);
	assert_int_not_equal(limits_read(0x7ffffff, &l), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(cgroups),
					   cmocka_unit_test(of_ourselves)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
