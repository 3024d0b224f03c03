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
#include "inject/place.h"

#define PAGE  4096ull
#define REACH 0x7fff0000ull

static const char usual[] = "555555554000-555555556000 r--p 00000000 08:01 11 /bin/prog\n"
			    "555555556000-555555560000 r-xp 00002000 08:01 11 /bin/prog\n"
			    "555555560000-555555562000 rw-p 0000c000 08:01 11 /bin/prog\n"
			    "555555562000-555555583000 rw-p 00000000 00:00 0 [heap]\n"
			    "7ffff7d00000-7ffff7e78000 r-xp 00000000 08:01 12 /lib/libc.so.6\n"
			    "7ffff7e78000-7ffff7f00000 rw-p 00178000 08:01 12 /lib/libc.so.6\n"
			    "7ffff7ffd000-7ffff7ffe000 rw-p 00000000 00:00 0 \n"
			    "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n"
			    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check(const struct maps *maps, uint64_t at, uint64_t low, uint64_t high,
		  uint64_t length)
{
	assert_int_not_equal(at, 0);
	assert_int_equal(at % PAGE, 0);
	assert_true(distance(at, low) <= REACH && distance(at + length, low) <= REACH);
	assert_true(distance(at, high) <= REACH && distance(at + length, high) <= REACH);
	vec_for_each (&maps->list, m) {
		/* The place is free, and at least a page away from its neighbours. */
		assert_true(at >= m->end + PAGE || at + length + PAGE <= m->start);
		if (!strcmp(m->path, "[stack]"))
			assert_true(at > m->end || m->start - at > (1 << 20));
		if (!strcmp(m->path, "[heap]"))
			assert_true(at < m->start || at - m->end > (128 << 20));
	}
}

static void test_usual(void **state)
{
	static const uint64_t near[] = {0x555555554000, 0x55555555f000, 0x7ffff7d00000,
					0x7ffff7e00123, 0x7ffff7e77fff};
	struct maps maps;

	(void)state;
	assert_int_equal(maps_parse(usual, &maps), 0);
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		for (uint64_t length = PAGE; length <= 1 << 20; length *= 16)
			check(&maps, place_near(&maps, near[i], near[i], REACH, length), near[i],
			      near[i], length);
	}
	check(&maps, place_near(&maps, 0x7ffff7d00000, 0x7ffff7e70000, REACH, 4 * PAGE),
	      0x7ffff7d00000, 0x7ffff7e70000, 4 * PAGE);
	/* No place is in reach of both the program's text and the library's. */
	assert_int_equal(place_near(&maps, 0x555555554000, 0x7ffff7d00000, REACH, PAGE), 0);
	maps_free(&maps);
}

/* A static program at 4 MiB: there is little room below it, and the heap is above it. */
static void test_low_program(void **state)
{
	static const char text[] = "400000-401000 r--p 00000000 08:01 11 /bin/static\n"
				   "401000-480000 r-xp 00001000 08:01 11 /bin/static\n"
				   "480000-4a0000 rw-p 00080000 08:01 11 /bin/static\n"
				   "4a0000-4c2000 rw-p 00000000 00:00 0 [heap]\n"
				   "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n";
	struct maps maps;

	(void)state;
	assert_int_equal(maps_parse(text, &maps), 0);
	check(&maps, place_near(&maps, 0x401000, 0x47f000, REACH, 4 * PAGE), 0x401000, 0x47f000,
	      4 * PAGE);
	assert_true(place_near(&maps, 0x401000, 0x47f000, REACH, 4 * PAGE) >= 0x10000);
	maps_free(&maps);
}

static void test_no_room(void **state)
{
	static const char text[] = "10000-7fffe0000000 rwxp 00000000 08:01 11 /all\n"
				   "7fffe0000000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n";
	struct maps maps;

	(void)state;
	assert_int_equal(maps_parse(text, &maps), 0);
	assert_int_equal(place_near(&maps, 0x400000, 0x400000, REACH, PAGE), 0);
	maps_free(&maps);
	/* There is room, but not enough, or out of reach. */
	assert_int_equal(maps_parse(usual, &maps), 0);
	assert_int_equal(place_near(&maps, 0x7ffff7d00000, 0x7ffff7d00000, REACH, 1ull << 46), 0);
	assert_int_equal(place_near(&maps, 0x7ffff7d00000, 0x7ffff7d00000, PAGE, PAGE), 0);
	maps_free(&maps);
}

/* A place chosen in this process can be mapped. */
static void test_own_process(void **state)
{
	uint64_t near[] = {(uint64_t)test_own_process, (uint64_t)mmap};
	struct maps maps;

	(void)state;
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		uint64_t at;
		void *p;

		assert_int_equal(maps_read(getpid(), &maps), 0);
		at = place_near(&maps, near[i], near[i], REACH, 4 * PAGE);
		check(&maps, at, near[i], near[i], 4 * PAGE);
		p = mmap((void *)at, 4 * PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		assert_ptr_equal(p, (void *)at);
		munmap(p, 4 * PAGE);
		maps_free(&maps);
	}
}

/* Gaps of all sizes: the place never overlaps a mapping and is never out of reach. */
static void test_random(void **state)
{
	int found = 0;

	(void)state;
	srand(7);
	for (int round = 0; round < 2000; round++) {
		uint64_t at = 0x10000, near = 0, place;
		char text[4000] = "";
		struct maps maps;
		size_t n = 0;

		for (int i = 0; i < 20; i++) {
			uint64_t size = (uint64_t)(rand() % 64 + 1) * PAGE;

			at += ((uint64_t)rand() % (1ull << (rand() % 20))) * PAGE;
			n += (size_t)snprintf(
			    text + n, sizeof(text) - n, "%lx-%lx r-xp 00000000 08:01 %d /lib/%d\n",
			    (unsigned long)at, (unsigned long)(at + size), i + 1, i);
			if (!near || rand() % 4 == 0)
				near = at;
			at += size;
		}
		assert_int_equal(maps_parse(text, &maps), 0);
		place = place_near(&maps, near, near, REACH, 4 * PAGE);
		if (place) {
			found++;
			check(&maps, place, near, near, 4 * PAGE);
		}
		maps_free(&maps);
	}
	assert_true(found > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_usual),   cmocka_unit_test(test_low_program),
	    cmocka_unit_test(test_no_room), cmocka_unit_test(test_own_process),
	    cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
