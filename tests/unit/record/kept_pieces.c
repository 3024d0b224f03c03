/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Old pieces are deleted.  Files that another process created, changed or moved are not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "record/pieces/kept_pieces.h"

static char folder[] = "/tmp/memprof-kept-XXXXXX";

static int make(void **state)
{
	(void)state;
	return !mkdtemp(folder);
}

static int clean(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *path_of(int n)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%d", folder, n);
	return path;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Writes piece @n and adds it as the recorder does. */
static void add(struct kept_pieces *k, int n, uint32_t keep)
{
	struct stat st;

	write_file(path_of(n), "piece");
	assert_int_equal(stat(path_of(n), &st), 0);
	st.st_size = 0; /* it is not complete yet then */
	assert_int_equal(kept_pieces_add(k, path_of(n), &st, keep), 0);
}

static int exists(int n)
{
	return !access(path_of(n), F_OK);
}

static void test_newest(void **state)
{
	struct kept_pieces k = {0};

	(void)state;
	for (int i = 0; i < 9; i++) {
		add(&k, i, 3);
		for (int n = 0; n <= i; n++)
			assert_int_equal(exists(n), n > i - 3);
	}
	assert_int_equal(k.deleted, 6);
	assert_int_equal(k.list.n, 3);
	assert_string_equal(k.list.at[0].path, path_of(6));
	kept_pieces_free(&k);
	for (int i = 6; i < 9; i++)
		unlink(path_of(i));
}

static void test_others(void **state)
{
	struct kept_pieces k = {0};
	struct stat other;

	(void)state;
	for (int i = 0; i < 5; i++)
		add(&k, i, 10);
	/* Replaced: a new file can have the number of the old one's inode. */
	unlink(path_of(0));
	usleep(20000);
	write_file(path_of(0), "owner");
	unlink(path_of(1)); /* removed */
	usleep(20000);
	write_file(path_of(2), "larger than it was"); /* changed */
	unlink(path_of(3));
	assert_int_equal(symlink("4", path_of(3)), 0);
	/* Replaced while it was still written: its descriptor was that of another file. */
	write_file(path_of(5), "other");
	assert_int_equal(stat(path_of(0), &other), 0);
	assert_int_equal(kept_pieces_add(&k, path_of(5), &other, 10), 0);
	add(&k, 6, 1);
	assert_int_equal(k.deleted, 1); /* number 4 */
	assert_int_equal(k.error, 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(!faccessat(AT_FDCWD, path_of(i), F_OK, AT_SYMLINK_NOFOLLOW),
				 i != 1 && i != 4);
	kept_pieces_free(&k);
	for (int i = 0; i < 7; i++)
		unlink(path_of(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_newest),
	    cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
