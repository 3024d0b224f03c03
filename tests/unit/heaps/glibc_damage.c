/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A walk of a damaged glibc heap must end, read each block about once, since the process or its copy is
 * stopped for as long, and say that the heap is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heaps/glibc/glibc.h"
#include "heaps/walker.h"
#include "../stopped.h"

enum {
	THREADS = 2,
	BLOCKS = 1000,
	SIZE = 100000, /* less than mmap_threshold; BLOCKS of them need a second heap of 64 MiB */
	SMALL = 24,
	FREED = 30, /* more than a tcache takes, so that some are in a fastbin */
};

/* The sound heap's size. */
struct sound {
	size_t blocks;
	uint64_t bytes_read;
};

static void *volatile block[THREADS][BLOCKS], *volatile main_block;
static pthread_barrier_t barrier;
static struct stopped at_rest;
static struct sound sound;

static void *fill_arena(void *arg)
{
	void *volatile *mine = arg;

	pthread_barrier_wait(&barrier); /* an arena that no thread uses any more would be shared */
	for (size_t i = 0; i < BLOCKS; i++)
		mine[i] = malloc(SIZE);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void make_arenas(int ready)
{
	void *volatile freed[FREED];
	pthread_t id[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&id[i], NULL, fill_arena, (void *)block[i]))
			return;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	main_block = malloc(SIZE);
	for (int i = 0; i < FREED; i++)
		freed[i] = malloc(SMALL);
	for (int i = 0; i < FREED; i++)
		free(freed[i]);
	(void)!write(ready, "", 1);
	for (;;)
		pause();
}

/* Walks the heap.  @doubt: what the walk must say; NULL: that the heap is exact.  Return: its size. */
static struct sound look(const char *doubt)
{
	struct image *img = &at_rest.img;
	struct mp_err err = {0};
	struct heap heap = {0};
	uint64_t before = img->bytes_read;
	struct sound s;

	assert_int_equal(walker_glibc.walk(img, &heap, &err), 0);
	s = (struct sound){heap.blocks.n, img->bytes_read - before};
	assert_int_equal(heap.exact, !doubt);
	if (doubt) {
		assert_non_null(strstr(heap.doubt, doubt));
		assert_true(s.blocks <= sound.blocks + FREED);
		assert_true(s.bytes_read <= 2 * sound.bytes_read);
	} else {
		assert_true(s.blocks > (size_t)THREADS * BLOCKS);
	}
	heap_free(&heap);
	return s;
}

/* Makes the word at @addr lead to @to, looks, and repairs it. */
static void damage(uint64_t addr, uint64_t to, const char *doubt)
{
	uint64_t before;

	assert_true(image_word(&at_rest.img, addr, &before) && before != to);
	stopped_write(&at_rest, addr, &to, sizeof(to));
	look(doubt);
	stopped_write(&at_rest, addr, &before, sizeof(before));
}

/* Return: the address of a chunk in a fastbin. */
static uint64_t fast_chunk(const struct glibc_arena *a)
{
	for (int i = 0; i < NUM_FASTBINS; i++) {
		if (a->fastbin[i])
			return a->fastbin[i];
	}
	fail_msg("all fastbins are empty");
	return 0;
}

static int begin(void **state)
{
	pid_t pid = child_start(make_arenas);

	(void)state;
	stopped_open(&at_rest, pid);
	sound = look(NULL);
	return 0;
}

static int end(void **state)
{
	pid_t pid = at_rest.img.pid;

	(void)state;
	look(NULL); /* all repaired */
	stopped_close(&at_rest);
	child_end(pid);
	return 0;
}

/* Damage can turn lists into rings that do not contain their first element. */
static void test_rings(void **state)
{
	struct image *img = &at_rest.img;
	struct heap heap = {0};
	struct glibc g = {.img = img, .heap = &heap, .l = glibc_layout(img->arch)};
	const struct glibc_arena *arena;
	uint64_t last_heap, chunk;

	(void)state;
	assert_int_equal(glibc_find(&g), 0);
	assert_true(g.arenas.n > THREADS);
	arena = &g.arenas.at[1];
	damage(arena->addr + g.l->next, arena->addr, "the list of arenas is broken");
	last_heap = arena->top & ~(g.l->heap_max[0] - 1);
	damage(last_heap + g.l->word, arena->top, "the heaps of the arena at");
	chunk = fast_chunk(&g.arenas.at[0]) + g.l->header;
	damage(chunk, chunk >> 12 ^ (chunk - g.l->header), "a tcache or fastbin is damaged");
	vec_free(&g.arenas);
	heap_free(&heap);
}

/* Zeroes that were written past the end of the block before do not make a header one that ends the
 * memory before a gap. */
static void test_zeroed_header(void **state)
{
	void *volatile *const variable[] = {&main_block, &block[0][BLOCKS / 2]};
	struct image *img = &at_rest.img;
	uint64_t addr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(image_word(img, (uintptr_t)variable[i], &addr) && addr);
		damage(addr - sizeof(addr), 0, "the chunk header at");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rings),
	    cmocka_unit_test(test_zeroed_header),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
