/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heaps and roots of a process with words of 32 bits.  The test builds the chunks, caches and
 * thread control blocks as in malloc/malloc.c and nptl/descr.h of glibc 2.36.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "heaps/walker.h"
#include "leaks/edges.h"
#include "leaks/mark.h"
#include "leaks/roots.h"
#include "leaks/tcb.h"

enum {
	DATA = 0x40100000, /* of libc.so.6 */
	ARENA = DATA + 0x100,
	PAR = DATA + 0x900,
	GLOBAL = DATA + 0x1000,
	HEAP = 0x00500000,
	MAPPED = 0x40300000,
	STACK = 0x40400000,
	TCB = STACK + 0x3000,
	SIZE = 0x4000, /* of each of these mappings */
	THREAD = 0x40500000,
};

static uint64_t get_sp(const struct arch_regs *regs)
{
	(void)regs;
	return STACK + 0x1000;
}

/* In no module, so only the arena's lock shows that a thread is inside malloc. */
static uint64_t get_pc(const struct arch_regs *regs)
{
	(void)regs;
	return 0;
}

static const struct arch narrow = {.name = "narrow",
				   .word_size = 4,
				   .address_bits = 32,
				   .tls = {.above = true},
				   .regs.get_sp = get_sp,
				   .regs.get_pc = get_pc};

static const uint32_t places[] = {HEAP, DATA, MAPPED, STACK, THREAD};
static const char *const paths[] = {"[heap]", "/lib/libc.so.6", "", "", ""};

struct world {
	uint8_t bytes[sizeof(places) / sizeof(places[0])][SIZE];
	struct image img;
};

static uint8_t *at(struct world *w, uint32_t addr)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (addr - places[i] < SIZE)
			return w->bytes[i] + (addr - places[i]);
	}
	return NULL;
}

static void put(struct world *w, uint32_t addr, uint32_t value)
{
	memcpy(at(w, addr), &value, sizeof(value));
}

static size_t read_bytes(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct image_map *m = image_map_at(img, addr);
	size_t left = m ? (size_t)(m->end - addr) : 0;

	len = len < left ? len : left;
	if (len)
		memcpy(to, at(img->backend, (uint32_t)addr), len);
	return len;
}

static uint64_t all_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	(void)img;
	(void)addr;
	return map->end;
}

static int no_file(struct image *img, const struct image_map *map)
{
	(void)img;
	(void)map;
	return -ENOENT;
}

static const struct image_ops ops = {
    .fetch = read_bytes, .present = all_present, .open_file = no_file};

/* Makes mp_ as in glibc 2.35 and newer, and an empty main arena. */
static void make_libc(struct world *w)
{
	uint32_t base = PAR + 56;

	put(w, PAR + 4, 131072);     /* top_pad */
	put(w, PAR + 36, 65536);     /* n_mmaps_max */
	put(w, base, HEAP);	     /* sbrk_base */
	put(w, base + 4, 64);	     /* tcache_bins */
	put(w, base + 8, 516);	     /* tcache_max_bytes */
	put(w, base + 12, 7);	     /* tcache_count */
	put(w, ARENA + 1092, ARENA); /* next */
	for (uint32_t i = 0; i < 127; i++) {
		put(w, ARENA + 60 + 8 * i, ARENA + 60 + 8 * i - 8);
		put(w, ARENA + 64 + 8 * i, ARENA + 60 + 8 * i - 8);
	}
}

/* Appends a chunk.  Return: the address of its block. */
static uint32_t chunk(struct world *w, uint32_t *end, uint32_t size)
{
	uint32_t user = *end + 8;

	put(w, *end + 4, size | 1); /* PREV_INUSE */
	*end += size;
	return user;
}

static void end_heap(struct world *w, uint32_t end)
{
	put(w, end + 4, (HEAP + SIZE - end) | 1);
	put(w, ARENA + 52, end);    /* top */
	put(w, ARENA + 1104, SIZE); /* system_mem */
}

static uint32_t mangled(uint32_t where, uint32_t to)
{
	return where >> 12 ^ to;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	image_init(&w->img, &narrow, 0);
	w->img.ops = &ops;
	w->img.backend = w;
	w->img.page_size = 4096;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct image_map m = {.start = places[i],
				      .end = places[i] + SIZE,
				      .read = true,
				      .write = true,
				      .path = strdup(paths[i])};

		assert_int_equal(vec_push(&w->img.maps, m), 0);
	}
	make_libc(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	image_close(&w->img);
	free(w);
	return 0;
}

static void add_thread(struct world *w, uint32_t tp)
{
	struct image_thread th = {.tid = 7, .tls = tp};

	assert_int_equal(vec_push(&w->img.threads, th), 0);
}

static void assert_blocks(const struct heap *h, const uint32_t (*want)[2], size_t n)
{
	assert_int_equal(h->blocks.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(h->blocks.at[i].addr, want[i][0]);
		assert_int_equal(h->blocks.at[i].size, want[i][1]);
	}
}

/* Blocks that are live, free, in a fastbin, in a tcache, or mappings of their own. */
static void test_glibc(void **state)
{
	struct world *w = *state;
	struct heap heap = {0};
	struct mp_err err = {0};
	uint32_t end = HEAP, tcache = chunk(w, &end, 0x188), a = chunk(w, &end, 16),
		 fast = chunk(w, &end, 24), freed = chunk(w, &end, 64), b = chunk(w, &end, 40),
		 first = chunk(w, &end, 32), second = chunk(w, &end, 32), c = chunk(w, &end, 24);

	end_heap(w, end);
	put(w, freed + 60 - 8 + 4, 64); /* size of the next chunk, without PREV_INUSE */
	put(w, b - 4, 40);
	put(w, ARENA + 12 + 4, fast - 8); /* fastbin of 24 bytes */
	put(w, fast, mangled(fast, 0));
	*(uint16_t *)(void *)at(w, tcache + 2 * 2) = 2; /* bin of 32 bytes: counts, entries */
	put(w, tcache + 128 + 4 * 2, first);
	put(w, first, mangled(first, second));
	put(w, second, mangled(second, 0));
	put(w, THREAD + 0x20, tcache); /* a thread-local variable */
	add_thread(w, THREAD + 8);
	put(w, MAPPED + 4, 0x2000 | 2); /* IS_MMAPPED */
	put(w, PAR + 32, 1);		/* n_mmaps, and its maximum */
	put(w, PAR + 40, 1);
	put(w, PAR + 48, 0x2000);
	put(w, PAR + 52, 0x2000);

	assert_int_equal(walker_glibc.walk(&w->img, &heap, &err), 0);
	assert_string_equal(heap.doubt, "");
	assert_true(heap.exact && heap.checksum_known);
	assert_blocks(
	    &heap, (const uint32_t[][2]){{a, 12}, {b, 36}, {c, 20}, {MAPPED + 8, 0x2000 - 8}}, 4);
	assert_int_equal(heap.cached_bytes, 0x184 + 20 + 28 + 28); /* with the tcache itself */
	heap_free(&heap);
}

static void test_overwritten(void **state)
{
	struct world *w = *state;
	struct heap heap = {0};
	struct mp_err err = {0};
	uint32_t end = HEAP;

	for (int i = 0; i < 100; i++)
		chunk(w, &end, 48);
	end_heap(w, end);
	put(w, HEAP + 10 * 48 + 4, 0x41414141);
	assert_int_equal(walker_glibc.walk(&w->img, &heap, &err), 0);
	assert_false(heap.exact);
	assert_int_equal(heap.damaged.at[0].addr, HEAP + 10 * 48);
	assert_int_equal(heap.blocks.n, 99);
	heap_free(&heap);
}

/* Each word of 4 bytes can be an address, also either half of 8 bytes. */
static void test_reachable(void **state)
{
	struct world *w = *state;
	struct heap heap = {0};
	struct mp_err err = {0};
	struct graph g;
	struct leaks l;
	struct coverage cover;
	uint32_t end = HEAP, kept = chunk(w, &end, 24), by_it = chunk(w, &end, 16),
		 inner = chunk(w, &end, 64), lost = chunk(w, &end, 24);

	end_heap(w, end);
	put(w, GLOBAL + 4, kept);
	put(w, kept + 12, by_it);
	put(w, GLOBAL + 12, inner + 61);
	put(w, lost, lost);
	assert_int_equal(walker_glibc.walk(&w->img, &heap, &err), 0);
	assert_int_equal(graph_init(&g, &narrow, heap.blocks.at, heap.blocks.n), 0);
	assert_int_equal(
	    roots_scan(&g, &w->img,
		       &(struct heap_ranges){heap.owned.at, heap.owned.n, NULL, 0, heap.busy},
		       &cover, &err),
	    0);
	assert_int_equal(graph_edges(&g, &w->img, &err), 0);
	assert_int_equal(mark_leaks(&g, &l), 0);
	assert_int_equal(l.total_count, 1);
	assert_int_equal(heap.blocks.at[l.direct.at[0].block].addr, lost);
	leaks_free(&l);
	graph_free(&g);
	heap_free(&heap);
}

static uint32_t leaked(struct world *w)
{
	struct heap heap = {0};
	struct mp_err err = {0};
	struct coverage cover;
	struct graph g;
	struct leaks l;
	uint32_t n;

	assert_int_equal(walker_glibc.walk(&w->img, &heap, &err), 0);
	assert_int_equal(graph_init(&g, &narrow, heap.blocks.at, heap.blocks.n), 0);
	assert_int_equal(
	    roots_scan(&g, &w->img,
		       &(struct heap_ranges){heap.owned.at, heap.owned.n, NULL, 0, heap.busy},
		       &cover, &err),
	    0);
	assert_int_equal(graph_edges(&g, &w->img, &err), 0);
	assert_int_equal(mark_leaks(&g, &l), 0);
	n = l.total_count;
	leaks_free(&l);
	graph_free(&g);
	heap_free(&heap);
	return n;
}

/* A block that malloc() is about to return is referenced by the address of its chunk, in a register
 * or on the stack of the thread that holds the arena's lock.  That is also the address of the last
 * word of the block before it. */
static void test_about_to_return(void **state)
{
	struct world *w = *state;
	uint32_t end = HEAP, before = chunk(w, &end, 24), fresh = chunk(w, &end, 24);
	uint32_t its_chunk = fresh - 8;

	end_heap(w, end);
	add_thread(w, THREAD + 0x800);
	put(w, GLOBAL, before);
	assert_int_equal(leaked(w), 1);
	w->img.threads.at[0].has_regs = true;
	w->img.threads.at[0].regs.size = 4;
	memcpy(w->img.threads.at[0].regs.raw, &its_chunk, 4);
	assert_int_equal(leaked(w), 0);
	memset(w->img.threads.at[0].regs.raw, 0, 4);
	put(w, STACK + 0x1010, its_chunk);
	assert_int_equal(leaked(w), 1); /* the thread has no lock, so the word is outdated */
	put(w, ARENA, 1);
	assert_int_equal(leaked(w), 0);
}

/* FcPattern {num, size, elements, refs} and FcCharSet {refs, num, leaves, numbers} of fontconfig: elements before the
 * pattern, arrays and a leaf behind the set. */
static void test_offsets(void **state)
{
	struct world *w = *state;
	uint32_t end = HEAP, elements = chunk(w, &end, 16 * 8 + 8), pattern = chunk(w, &end, 24),
		 set = chunk(w, &end, 24), leaves = chunk(w, &end, 8 * 4 + 8),
		 numbers = chunk(w, &end, 24), leaf = chunk(w, &end, 40);
	const uint32_t p[] = {1, 16, elements - pattern, 1},
		       s[] = {3, 1, leaves - set, numbers - set};
	char *const path = w->img.maps.at[2].path;

	end_heap(w, end);
	put(w, GLOBAL, pattern);
	put(w, GLOBAL + 4, set);
	put(w, leaves, leaf - leaves);
	for (uint32_t i = 0; i < 4; i++) {
		put(w, pattern + 4 * i, p[i]);
		put(w, set + 4 * i, s[i]);
	}
	assert_int_equal(leaked(w),
			 4); /* numbers that happen to look so, in a program without it */
	w->img.maps.at[2].path = (char *)"/usr/lib/libfontconfig.so.1.12.0";
	assert_int_equal(leaked(w), 0);
	put(w, set + 12, numbers - set + 8);
	assert_int_equal(leaked(w), 3);
	put(w, pattern + 4, 128); /* more elements than the block has room for */
	assert_int_equal(leaked(w), 4);
	w->img.maps.at[2].path = path;
}

/* struct pthread of an ended thread at the top of a stack that is kept for another thread. */
static void test_dead_thread(void **state)
{
	struct world *w = *state;
	const uint32_t links = TCB + 24 * 4, other = THREAD + 0x100;
	const uint32_t living = THREAD + 0x800, tp = living + 0x5c0;
	uint64_t until;

	add_thread(w, tp);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), 0);
	put(w, links, other);
	put(w, links + 4, other);
	put(w, other, links);
	put(w, other + 4, links);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), 0); /* no stack */
	put(w, TCB + 0x300, STACK - 0x1000); /* begins with its guard page */
	put(w, TCB + 0x304, SIZE + 0x1000);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), TCB);
	assert_int_equal(until, STACK + SIZE);
	/* A living thread shows the size of a control block: variables above it are dead. */
	put(w, living + 24 * 4, other + 0x10);
	put(w, living + 25 * 4, other + 0x10);
	put(w, living + 26 * 4, 7);
	put(w, other + 0x10, living + 24 * 4);
	put(w, other + 0x14, living + 24 * 4);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), TCB);
	assert_int_equal(until, TCB + 0x5c0 + 8);
	assert_int_equal(tcb_dead(&w->img, STACK - 0x2000, STACK + SIZE, &until),
			 0);		  /* the mapping has more below the stack */
	put(w, TCB + 26 * 4, UINT32_MAX); /* joined */
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), TCB);
	put(w, TCB + 26 * 4, 1234);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), 0); /* it lives */
	put(w, TCB + 26 * 4, 0);
	put(w, other + 4, 0);
	put(w, other, 0);
	assert_int_equal(tcb_dead(&w->img, STACK, STACK + SIZE, &until), 0); /* not linked */
}

static void test_demangle(void **state)
{
	const struct arch rotating = {.word_size = 8, .guard = {ARCH_GUARD_TCB, 0x30, 17}};
	const uint64_t guard = 0x123456789abcdef0, plain = 0x7ffc00001000, x = plain ^ guard;

	(void)state;
	assert_int_equal(tcb_demangle(&rotating, x << 17 | x >> 47, guard), plain);
	assert_int_equal(tcb_demangle(&narrow, 0x40100000 ^ 0xdeadbeef, 0xdeadbeef), 0x40100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_glibc, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_overwritten, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_reachable, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_about_to_return, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_offsets, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_dead_thread, set_up, tear_down),
	    cmocka_unit_test(test_demangle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
