/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which files are opened for the lines of a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/source_file.h"

static char folder[] = "/tmp/memprof-unit-XXXXXX";
static char file[64];

/* Return: whether a file was opened, which is then @file. */
static bool opens(const char *recorded, const char *wanted, const struct source_prefixes *p)
{
	char *path = NULL;
	time_t changed;
	FILE *f = source_open(recorded, wanted, p, &path, &changed);

	if (!f)
		return false;
	assert_string_equal(path, file);
	fclose(f);
	free(path);
	return true;
}

static void recorded_path(void **state)
{
	const struct source_prefixes none = {0}, recorded = {.recorded_only = true};

	(void)state;
	assert_true(opens(file, "a.c", &none));
	assert_true(opens(file, "a.c", &recorded));
}

/* The user's own path is opened for a user of this machine, not for one of another. */
static void wanted_path(void **state)
{
	const struct source_prefixes none = {0}, recorded = {.recorded_only = true};

	(void)state;
	assert_true(source_is("a.c", file, &recorded));
	assert_true(opens("a.c", file, &none));
	assert_false(opens("a.c", file, &recorded));
}

static void replaced_path(void **state)
{
	char prefix[96];
	const struct source_prefixes with = {.at = {prefix}, .n = 1, .recorded_only = true};

	(void)state;
	snprintf(prefix, sizeof(prefix), "/build=%s", folder);
	assert_true(opens("/build/a.c", "a.c", &with));
	assert_false(opens("/other/a.c", "a.c", &with));
}

static void not_a_file(void **state)
{
	const struct source_prefixes none = {0};

	(void)state;
	assert_false(opens(folder, folder, &none));
	assert_false(opens("/dev/null", "/dev/null", &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(recorded_path), cmocka_unit_test(wanted_path),
	    cmocka_unit_test(replaced_path), cmocka_unit_test(not_a_file)};
	FILE *f;
	int ret;

	if (!mkdtemp(folder))
		return 1;
	snprintf(file, sizeof(file), "%s/a.c", folder);
	f = fopen(file, "w");
	if (!f || fclose(f))
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file);
	rmdir(folder);
	return ret;
}
