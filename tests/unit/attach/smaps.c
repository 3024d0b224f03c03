/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach/proc/smaps.h"

static int parse(const char *text, struct map_usages *u)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int ret;

	assert_non_null(f);
	ret = map_usages_parse(f, u);
	fclose(f);
	return ret;
}

static void test_text(void **state)
{
	static const char text[] =
	    "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n"
	    "Size:                132 kB\nKernelPageSize:        4 kB\nRss:                  48 "
	    "kB\n"
	    "Anonymous:            44 kB\nSwap:                  8 kB\nSwapPss:               1 "
	    "kB\n"
	    "VmFlags: rd wr mr mw me ac sd \n"
	    "7f0000000000-7f0000001000 r-xp 00001000 fe:00 123  /opt/a b.so (deleted)\n"
	    "Rss:                   4 kB\nAnonymous:             0 kB\n"
	    "7f1000000000-7f1000001000 ---p 00000000 00:00 0 \n"
	    "Rss:                   0 kB\nSwap:                  0 kB\n"
	    "7f2000000000-7f2000001000 rw-p 00000000 00:00 0 \n"
	    "Rss:                   0 kB\nSwap:                  4 kB\n"
	    "7f3000000000-7f3000001000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n"
	    "Rss:                   0 kB\nVmFlags: rd wr sh mr mw me ms dc sd \n"
	    "7f4000000000-7f4000001000 rw-s 00000000 00:06 9 /dev/uio0\n"
	    "Rss:                   0 kB\nVmFlags: rd wr sh mr mw me ms pf io dc de dd \n";
	struct map_usages u;

	(void)state;
	assert_int_equal(parse(text, &u), 0);
	assert_int_equal(u.list.n, 4);
	assert_string_equal(u.list.at[0].path, "[heap]");
	assert_int_equal(u.list.at[0].start, 0x55d0c8a00000);
	assert_int_equal(u.list.at[0].end, 0x55d0c8a21000);
	assert_int_equal(u.list.at[0].prot, PROT_READ | PROT_WRITE);
	assert_int_equal(u.list.at[0].rss, 48 << 10);
	assert_int_equal(u.list.at[0].anonymous, 44 << 10);
	assert_int_equal(u.list.at[0].swap, 8 << 10);
	assert_string_equal(u.list.at[1].path, "/opt/a b.so (deleted)");
	assert_int_equal(u.list.at[1].prot, PROT_READ | PROT_EXEC);
	assert_string_equal(u.list.at[2].path, "");
	assert_int_equal(u.list.at[2].swap, 4 << 10);
	assert_false(u.list.at[2].shared || u.list.at[2].dontfork);
	assert_true(u.list.at[3].shared && u.list.at[3].dontfork);
	map_usages_free(&u);
	assert_int_equal(parse("nonsense\n", &u), -EINVAL);
	assert_int_equal(u.list.n, 0);
}

static void test_ourselves(void **state)
{
	size_t size = 8 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct map_usages u;
	uint64_t inside = 0;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 1, size);
	assert_int_equal(map_usages_read(getpid(), &u), 0);
	vec_for_each (&u.list, m) {
		if ((uint64_t)(uintptr_t)p >= m->start && (uint64_t)(uintptr_t)p < m->end)
			inside = m->rss;
	}
	assert_true(inside >= size);
	map_usages_free(&u);
	munmap(p, size);
	assert_int_equal(map_usages_read(-1, &u), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
					   cmocka_unit_test(test_ourselves)};

	return cmocka_run_group_tests_name("attach/smaps", tests, NULL, NULL);
}
