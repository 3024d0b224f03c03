/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/maps.h"

/* Lines of each kind that kernels write. */
static const char text[] =
    "00010000-00011000 r-xp 00000000 00:00 0 \n"
    "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n"
    "7f0c6a000000-7f0c6a1d5000 r--s 001d4000 fd:01 18350301                   /a b\\012c "
    "(deleted)\n"
    "7f0c6a1d5000-7f0c6a1d7000 ---p 00000000 00:00 0\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void every_field(void **state)
{
	struct maps maps;
	const struct map *m;

	(void)state;
	assert_int_equal(maps_parse(text, &maps), 0);
	assert_int_equal(maps.list.n, 5);
	m = maps.list.at;
	assert_true(m[0].read && !m[0].write && m[0].exec && !m[0].shared);
	assert_string_equal(m[0].path, "");
	assert_true(m[1].start == 0x55d0c8a00000 && m[1].end == 0x55d0c8a21000);
	assert_true(m[1].read && m[1].write && !m[1].exec && !m[1].shared);
	assert_string_equal(m[1].path, "[heap]");
	assert_true(m[2].offset == 0x1d4000 && m[2].ino == 18350301);
	assert_true(m[2].dev_major == 0xfd && m[2].dev_minor == 1 && m[2].shared);
	assert_string_equal(m[2].path, "/a b\\012c (deleted)");
	assert_true(!m[3].read && !m[3].write && !m[3].exec);
	assert_string_equal(m[3].path, "");
	assert_true(m[4].start == 0xffffffffff600000);
	assert_ptr_equal(maps_find(&maps, 0x7f0c6a1d4fff), &m[2]);
	assert_ptr_equal(maps_find(&maps, 0x7f0c6a1d5000), &m[3]);
	assert_null(maps_find(&maps, 0x7f0c6a1d7000));
	maps_free(&maps);
}

static void not_maps(void **state)
{
	static const char *const bad[] = {
	    "x",
	    "\n",
	    "1000\n",
	    "1000-2000\n",
	    "1000-2000 r--p\n",
	    "1000-2000 r-\n",
	    "1000-2000 r--p 0 0:0\n",
	    "1000-2000 r--p 0 0:0 x\n",
	    "1000-2000 r--p 0 00 0\n",
	    "-2000 r--p 0 0:0 0\n",
	    "1000-2000 r--p 0 0:0 0\n\n",
	    "1000-2000 r--p 0 0:0 99999999999999999999\n",
	    "10000000000000000-20000000000000000 r--p 0 0:0 0\n",
	};
	struct maps maps;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(maps_parse(bad[i], &maps), -EINVAL);
		assert_int_equal(maps.list.n, 0);
	}
	assert_int_equal(maps_parse("", &maps), 0);
	assert_int_equal(maps.list.n, 0);
}

/* Return: the CPU time for parsing @n mappings, the minimum of several tries. */
static uint64_t parse_ns(size_t n)
{
	const size_t size = 80;
	char *many = malloc(n * size + 1), *at = many;
	uint64_t least = UINT64_MAX;

	assert_non_null(many);
	for (size_t i = 0; i < n; i++)
		at += snprintf(at, size, "%zx-%zx rw-p 00000000 00:00 0 \n",
			       0x7f0000000000 + i * 4096, 0x7f0000000000 + (i + 1) * 4096);
	for (int i = 0; i < 5; i++) {
		struct timespec from, to;
		struct maps maps;
		uint64_t ns;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		assert_int_equal(maps_parse(many, &maps), 0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		assert_int_equal(maps.list.n, n);
		maps_free(&maps);
		ns = (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec);
		least = ns < least ? ns : least;
	}
	free(many);
	return least;
}

/* The time must be linear: 16 times as many mappings take 16 times as long, not 256 times. */
static void linear(void **state)
{
	(void)state;
	/* All tries but the first use the same memory: in some virtual machines a page fault takes
	 * microseconds, and only the longer list would have new pages each time. */
	assert_true(mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, INT_MAX));
	assert_true(parse_ns(65536) < 64 * parse_ns(4096));
}

static void maps_of_a_living_one(void **state)
{
	struct maps maps;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	assert_non_null(maps_find(&maps, (uint64_t)(uintptr_t)maps_of_a_living_one));
	maps_free(&maps);
}

/* The process is a zombie: its maps file is empty. */
static void maps_of_an_ended_one(void **state)
{
	struct maps maps;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(maps_read(pid, &maps), -ESRCH);
	assert_int_equal(maps.list.n, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(maps_read(pid, &maps), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_field),
	    cmocka_unit_test(not_maps),
	    cmocka_unit_test(linear),
	    cmocka_unit_test(maps_of_a_living_one),
	    cmocka_unit_test(maps_of_an_ended_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
