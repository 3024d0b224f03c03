/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A process can be stopped while a thread of it links the objects of a new tcmalloc span.  None of these
 * objects is in use, and the incomplete list is no damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heaps/tcmalloc/tcmalloc.h"
#include "heaps/walker.h"
#include "../stopped.h"

enum { BLOCKS = 5000, SIZE = 100 };

static const char *self;
static void *volatile block[BLOCKS];

static int victim(void)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = malloc(SIZE);
	if (write(STDOUT_FILENO, "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static void become_victim(int ready)
{
	setenv("LD_PRELOAD", "libtcmalloc_minimal.so.4", 1);
	dup2(ready, STDOUT_FILENO);
	execl(self, self, "victim", NULL);
}

/* Finds a span all of whose objects are in use.  Return: its address in the process. */
static uint64_t full_span(struct image *img, struct tc_span *s)
{
	struct heap heap = {0};
	struct tc tc = {.img = img, .heap = &heap};
	uint64_t leaf, at;

	assert_int_equal(tc_find(&tc), 0);
	for (uint64_t root = 0; root < TC_ROOT_WORDS; root++) {
		assert_true(image_read_all(img, tc.root + root * 8, &leaf, sizeof(leaf)));
		for (uint64_t i = 0; leaf && i < 1ull << TC_LEAF_SHIFT; i++) {
			assert_true(image_read_all(img, leaf + i * 8, &at, sizeof(at)));
			if (!at || !image_read_all(img, at, s, sizeof(*s)) ||
			    tc_location(s) != TC_IN_USE || !s->class || s->objects ||
			    tc.size[s->class] < SIZE)
				continue;
			heap_free(&heap);
			return at;
		}
	}
	fail_msg("no span is full");
	return 0;
}

/* Return: bytes of the blocks in @h that are in @s. */
static uint64_t live_in(const struct heap *h, const struct tc_span *s)
{
	uint64_t base = s->start << TC_PAGE_SHIFT, end = (s->start + s->pages) << TC_PAGE_SHIFT,
		 sum = 0;

	vec_for_each (&h->blocks, b)
		sum += b->addr >= base && b->addr < end ? b->size : 0;
	return sum;
}

static void look(struct image *img, const struct tc_span *s, bool half_made)
{
	struct mp_err err = {0};
	struct heap heap = {0};

	assert_int_equal(walker_tcmalloc.walk(img, &heap, &err), 0);
	assert_int_equal(heap.damaged.n, 0);
	if (half_made) {
		assert_int_equal(live_in(&heap, s), 0);
		assert_false(heap.exact);
		assert_true(heap.passing);
		assert_non_null(strstr(heap.doubt, "a thread was changing the span"));
	} else {
		assert_true(live_in(&heap, s) > 0);
		assert_string_equal(heap.doubt, "");
	}
	heap_free(&heap);
}

static void test_half_made(void **state)
{
	struct stopped at_rest;
	struct image *img = &at_rest.img;
	struct tc_span s, now;
	pid_t pid = child_start(become_victim);
	uint64_t at, objects;

	(void)state;
	stopped_open(&at_rest, pid);
	at = full_span(img, &s);
	look(img, &s, false);
	/* no list yet; a list of one object; a list whose last word is still what was there before */
	objects = s.start << TC_PAGE_SHIFT;
	for (int step = 0; step < 3; step++) {
		uint64_t next = step == 2 ? 0x4141414141414141 : 0;

		now = s;
		now.refcount = 0;
		now.objects = step ? objects : 0;
		stopped_write(&at_rest, at, &now, sizeof(now));
		stopped_write(&at_rest, objects, &next, sizeof(next));
		look(img, &s, true);
	}
	stopped_close(&at_rest);
	child_end(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_half_made)};

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "victim"))
		return victim();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
