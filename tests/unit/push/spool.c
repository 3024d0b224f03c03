/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "push/spool.h"

#define LIMIT 4096u

struct place {
	char dir[32];
	struct spool s;
};

static void put(struct spool *s, char fill, size_t n)
{
	char body[2 * LIMIT];

	memset(body, fill, sizeof(body));
	assert_return_code(spool_put(s, "", body, n), 0);
}

/* Takes the oldest request and removes it.  Return: its first character, 0: there is none. */
static char take(struct spool *s)
{
	struct spooled r;
	char first;

	if (!spool_take(s, &r))
		return 0;
	first = r.body[0];
	spool_done(s, &r, false);
	return first;
}

/* What is put in comes out, the oldest first. */
static void in_order(void **state)
{
	struct place *p = *state;
	struct spooled r;

	assert_return_code(spool_put(&p->s, "?name=a", "one\ntwo", 7), 0);
	put(&p->s, 'b', 1);
	assert_int_equal(spool_count(&p->s), 2);
	assert_int_equal(spool_take(&p->s, &r), 1);
	assert_string_equal(r.query, "?name=a");
	assert_int_equal(r.n, 7);
	assert_memory_equal(r.body, "one\ntwo", 7);
	spool_done(&p->s, &r, true);
	assert_int_equal(take(&p->s), 'o');
	assert_int_equal(take(&p->s), 'b');
	assert_int_equal(take(&p->s), 0);
	assert_int_equal(p->s.dropped, 0);
}

/* The oldest are dropped, and counted, when there are too many bytes; a request that is larger than all of it, too. */
static void bounded(void **state)
{
	struct place *p = *state;
	char large[LIMIT] = "";

	for (char c = 'a'; c < 'i'; c++)
		put(&p->s, c, LIMIT / 4 - 1);
	assert_int_equal(p->s.dropped, 4);
	assert_int_equal(spool_put(&p->s, "", large, sizeof(large)), -EFBIG);
	assert_int_equal(p->s.dropped, 5);
	for (char c = 'e'; c < 'i'; c++)
		assert_int_equal(take(&p->s), c);
	assert_int_equal(take(&p->s), 0);
}

/* A second process neither sends nor waits for the request that another one is sending. */
static void shared(void **state)
{
	struct place *p = *state;
	struct spool other;
	struct spooled r;
	struct mp_err err;

	assert_return_code(spool_open(&other, p->dir, LIMIT, &err), 0);
	put(&p->s, 'a', 1);
	put(&other, 'b', 1);
	assert_int_equal(spool_take(&p->s, &r), 1);
	assert_int_equal(take(&other), 'b');
	assert_int_equal(take(&other), 0);
	spool_done(&p->s, &r, true);
	assert_int_equal(take(&other), 'a');
	spool_close(&other);
}

static void write_file(const struct place *p, const char *name, const char *text, int *fd)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	*fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_return_code(*fd, errno);
	assert_int_equal(write(*fd, text, strlen(text)), strlen(text));
}

/* Files of others stay, a damaged one is removed, and so is one that a killed process has not completed. */
static void other_files(void **state)
{
	struct place *p = *state;
	int others, damaged, left, written;
	struct spool again;
	struct mp_err err;

	write_file(p, "notes.txt", "mine", &others);
	write_file(p, "1.push", "no line", &damaged);
	write_file(p, "2.push.new", "half", &left);
	write_file(p, "3.push.new", "half", &written);
	assert_return_code(flock(written, LOCK_EX), errno);
	close(left);
	assert_return_code(spool_open(&again, p->dir, LIMIT, &err), 0);
	put(&again, 'a', 1);
	assert_int_equal(take(&again), 'a');
	assert_int_equal(take(&again), 0);
	assert_int_equal(faccessat(again.dir, "notes.txt", F_OK, 0), 0);
	assert_int_equal(faccessat(again.dir, "3.push.new", F_OK, 0), 0);
	assert_int_equal(faccessat(again.dir, "1.push", F_OK, 0), -1);
	assert_int_equal(faccessat(again.dir, "2.push.new", F_OK, 0), -1);
	spool_close(&again);
	close(others);
	close(damaged);
	close(written);
}

static void private_files(void **state)
{
	struct place *p = *state;
	struct spooled r;
	struct stat st;

	assert_return_code(fstat(p->s.dir, &st), errno);
	assert_int_equal(st.st_mode & 0777, 0700);
	put(&p->s, 'a', 1);
	assert_int_equal(spool_take(&p->s, &r), 1);
	assert_return_code(fstat(r.fd, &st), errno);
	assert_int_equal(st.st_mode & 0777, 0600);
	spool_done(&p->s, &r, false);
}

static int setup(void **state)
{
	static struct place p;
	struct mp_err err;

	strcpy(p.dir, "/tmp/memprof-spool-XXXXXX");
	*state = &p;
	return mkdtemp(p.dir) ? spool_open(&p.s, p.dir, LIMIT, &err) : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {"notes.txt", "3.push.new"};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlinkat(p->s.dir, names[i], 0);
	spool_close(&p->s);
	return rmdir(p->dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(in_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(bounded, setup, teardown),
	    cmocka_unit_test_setup_teardown(shared, setup, teardown),
	    cmocka_unit_test_setup_teardown(other_files, setup, teardown),
	    cmocka_unit_test_setup_teardown(private_files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
