/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Containers by shape in made-up heaps, of 64 and of 32 bits: regular, random and damaged ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "leaks/types/block_names.h"
#include "leaks/edges.h"

enum {
	BASE = 0x10000000,
	SIZE = 4 << 20,
	MAX_BLOCKS = 30000,
};

struct heap_world {
	struct arch arch;
	struct image img;
	uint8_t bytes[SIZE];
	struct heap_block block[MAX_BLOCKS];
	uint32_t n;
	uint64_t end, state;
	struct graph graph;
	struct block_names names;
	struct modules *modules;
};

static size_t read_bytes(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct heap_world *w = img->backend;
	const uint64_t left = addr - BASE < SIZE ? BASE + SIZE - addr : 0;

	len = len < left ? len : (size_t)left;
	if (len)
		memcpy(to, w->bytes + (addr - BASE), len);
	return len;
}

static uint64_t all_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	(void)img;
	(void)addr;
	return map->end;
}

static const struct image_ops ops = {.fetch = read_bytes, .present = all_present};

static struct heap_world *world(unsigned int word, uint64_t seed)
{
	struct heap_world *w = calloc(1, sizeof(*w));
	static char none[] = "";
	const struct image_map heap = {
	    .start = BASE, .end = BASE + SIZE, .read = true, .write = true, .path = none};

	assert_non_null(w);
	w->arch = word == 8 ? arch_x86_64 : arch_arm;
	image_init(&w->img, &w->arch, 0);
	w->img.ops = &ops;
	w->img.backend = w;
	w->img.page_size = 4096;
	assert_int_equal(vec_push(&w->img.maps, heap), 0);
	w->end = BASE;
	w->state = seed * 0x9e3779b97f4a7c15ull + 1;
	return w;
}

static void free_world(struct heap_world *w)
{
	block_names_free(&w->names);
	graph_free(&w->graph);
	modules_free(w->modules);
	vec_free(&w->img.maps);
	free(w);
}

static uint32_t number(struct heap_world *w, uint32_t below)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return (uint32_t)((w->state >> 20) % below);
}

/* Return: the address of a new block of @words, which is some bytes behind the last one. */
static uint64_t block(struct heap_world *w, uint32_t words)
{
	const uint64_t addr = (w->end + 16 + 15) & ~15ull,
		       size = (uint64_t)words * w->arch.word_size;

	assert_true(w->n < MAX_BLOCKS && addr + size < BASE + SIZE);
	w->block[w->n++] = (struct heap_block){addr, size};
	w->end = addr + size;
	return addr;
}

static void put(struct heap_world *w, uint64_t addr, uint32_t word, uint64_t value)
{
	memcpy(w->bytes + (addr - BASE) + (size_t)word * w->arch.word_size, &value,
	       w->arch.word_size);
}

static void find(struct heap_world *w)
{
	struct mp_err err;

	w->modules = modules_new(&w->img);
	assert_non_null(w->modules);
	assert_int_equal(graph_init(&w->graph, &w->arch, w->block, w->n), 0);
	w->graph.detailed = true;
	assert_int_equal(graph_edges(&w->graph, &w->img, &err), 0);
	assert_int_equal(block_names_take(&w->names, &w->graph, &w->img, w->modules), 0);
}

static struct container_sum sum_of(const struct heap_world *w, const char *what)
{
	struct container_sum sum = {0};

	vec_for_each (&w->names.list, name) {
		if (strstr(name->text, what) != name->text)
			continue;
		sum.count += name->sum.count;
		sum.elements += name->sum.elements;
		sum.blocks += name->sum.blocks;
		sum.bytes += name->sum.bytes;
		sum.unused += name->sum.unused;
		sum.buckets += name->sum.buckets;
	}
	return sum;
}

static void expect(const struct heap_world *w, const char *what, uint64_t count, uint64_t elements)
{
	const struct container_sum sum = sum_of(w, what);

	assert_int_equal(sum.count, count);
	assert_int_equal(sum.elements, elements);
}

static void expect_no_nodes(const struct heap_world *w)
{
	expect(w, "singly", 0, 0);
	expect(w, "doubly", 0, 0);
	expect(w, "binary", 0, 0);
	expect(w, "tree", 0, 0);
	expect(w, "hash", 0, 0);
}

static const unsigned int widths[] = {4, 8};
#define EACH_WIDTH(it) for (const unsigned int *it = widths; it < widths + 2; it++)

/* ------------------------------------------------------------- regular ones -- */

static void test_lists(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 1);
		uint64_t before = 0, head, odd = 0;

		/* With the head in another block.  Each tenth block is two words larger. */
		head = block(w, 3);
		for (int i = 0; i < 1000; i++) {
			uint64_t at = block(w, i % 10 ? 8 : 10);

			odd += !(i % 10);
			put(w, at, 2, before);
			before = at;
		}
		put(w, head, 1, before);
		/* Linked by a word in their middle, both ways, to a head in a block. */
		head = block(w, 3);
		before = head;
		for (int i = 0; i < 500; i++) {
			uint64_t at = block(w, 13) + 4ull * *width;

			put(w, before, 0, at);
			put(w, at, 1, before);
			before = at;
		}
		put(w, before, 0, head);
		put(w, head, 1, before);
		/* 300 rings of 7 */
		for (int i = 0; i < 300; i++) {
			uint64_t first = block(w, 21), last = first;

			for (int j = 0; j < 6; j++) {
				uint64_t at = block(w, 21);

				put(w, last, 5, at);
				last = at;
			}
			put(w, last, 5, first);
		}
		find(w);
		expect(w, "singly linked list", 301, 1000 + 2100);
		expect(w, "doubly linked list", 1, 500);
		assert_int_equal(sum_of(w, "singly").bytes,
				 (1000 * 8 + odd * 2 + 2100 * 21) * *width);
		expect(w, "hash", 0, 0);
		expect(w, "binary", 0, 0);
		vec_for_each (&w->names.containers, c) {
			if (c->elements == 1000)
				assert_int_equal(c->addr, w->block[0].addr + *width);
			if (c->elements == 500)
				assert_int_equal(c->addr, head);
		}
		free_world(w);
	}
}

static void test_trees(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 2);
		uint64_t node[1500];

		/* Random trees of 500 with a parent, two children and a key. */
		for (int i = 0; i < 1500; i++) {
			int at = i / 500 * 500;

			node[i] = block(w, 11);
			for (bool placed = i == at; !placed;) {
				uint32_t side = 1 + number(w, 2);
				uint64_t to = 0;

				memcpy(&to, w->bytes + (node[at] - BASE) + side * *width, *width);
				placed = !to;
				if (placed) {
					put(w, node[at], side, node[i]);
					put(w, node[i], 0, node[at]);
				}
				for (int j = 0; to && j < 1500; j++)
					at = node[j] == to ? j : at;
			}
		}
		find(w);
		expect(w, "binary tree", 3, 1500);
		expect(w, "singly", 0, 0);
		expect(w, "doubly", 0, 0);
		free_world(w);
	}
}

/* A radix tree with 16 children in each node. */
static void test_radix(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 6);
		uint64_t root = block(w, 18), n = 1;

		for (int i = 0; i < 2000; i++) {
			uint64_t at = root;

			for (bool placed = false; !placed;) {
				uint32_t child = 2 + number(w, 16);
				uint64_t to = 0;

				memcpy(&to, w->bytes + (at - BASE) + child * *width, *width);
				placed = !to;
				if (placed)
					put(w, at, child, block(w, 18));
				n += placed;
				at = to;
			}
		}
		find(w);
		expect(w, "tree of ", 1, n);
		expect(w, "singly", 0, 0);
		expect(w, "doubly", 0, 0);
		expect(w, "binary", 0, 0);
		free_world(w);
	}
}

static void test_hash(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 3);
		uint64_t table = block(w, 1024), head = block(w, 2), last = head;

		for (int i = 0; i < 900; i++) {
			/* Entries of three sizes. */
			uint64_t at = block(w, i % 20 ? 9 : 12), to = 0;
			uint32_t bucket = number(w, 1024);

			memcpy(&to, w->bytes + (table - BASE) + bucket * *width, *width);
			put(w, at, 0, to);
			put(w, table, bucket, at);
			/* All of them are in a list, too. */
			put(w, at, 3, last);
			put(w, last, last == head ? 0 : 4, at);
			last = at;
		}
		find(w);
		expect(w, "hash table", 1, 900);
		assert_int_equal(sum_of(w, "hash").buckets, 1024);
		assert_int_equal(sum_of(w, "hash").blocks, 901);
		free_world(w);
	}
}

static void test_array(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 4);
		uint64_t array = block(w, 300);

		for (uint32_t i = 0; i < 200; i++)
			put(w, array, i, block(w, 6));
		find(w);
		expect(w, "array of pointers to ", 1, 200);
		assert_int_equal(sum_of(w, "array").unused, 100 * *width);
		expect_no_nodes(w);
		free_world(w);
	}
}

/* ------------------------------------------------------------- random ones -- */

/* Blocks of a few sizes, with pointers to any of them in random words: no node anywhere. */
static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct heap_world *w = world(seed % 2 ? 8 : 4, seed);
		const uint32_t sizes = 1 + number(w, 4), n = 200 + number(w, 3000),
			       words = 2 + number(w, number(w, 4) ? 10 : 40),
			       share = 1 + number(w, 40);
		/* Pointers are in any word, or always in the same ones. */
		const uint32_t used = number(w, 2) ? words : 1 + number(w, words);

		for (uint32_t i = 0; i < n; i++)
			block(w, words + 4 * number(w, sizes));
		for (uint32_t i = 0; i < n; i++) {
			for (uint32_t j = 0; j < used; j++) {
				const struct heap_block *to = &w->block[number(w, n)];

				if (number(w, 40) < share)
					put(w, w->block[i].addr, j,
					    to->addr + (number(w, 4) ? 0 : number(w, 8)));
			}
		}
		find(w);
		expect_no_nodes(w);
		free_world(w);
	}
}

/* Whatever is in the words: what is found is a part of what there is. */
static void check_sums(const struct heap_world *w, uint64_t bytes)
{
	static const char *const what[] = {"singly", "doubly", "binary", "tree", "hash"};

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		const struct container_sum sum = sum_of(w, what[i]);

		assert_true(sum.elements <= w->n);
		assert_true(sum.blocks <= w->n);
		assert_true(sum.bytes <= bytes);
		assert_true(sum.unused <= sum.bytes);
	}
}

/* Lists, a tree and a table of which some words are overwritten by addresses of other blocks. */
static void test_damaged(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct heap_world *w = world(seed % 2 ? 8 : 4, seed + 1000);
		const uint32_t n = 100 + number(w, 1000), damage = number(w, n);
		const uint64_t table = block(w, 256);
		uint64_t last = 0, bytes = 0;

		for (uint32_t i = 0; i < n; i++) {
			uint64_t at = block(w, 7 + number(w, 2)), leaf = block(w, 7);

			put(w, at, 0, last);
			if (last)
				put(w, last, 1, at);
			put(w, table, i % 256, at);
			put(w, at, 2, leaf);
			put(w, leaf, 3, w->block[number(w, w->n)].addr);
			last = at;
		}
		for (uint32_t i = 0; i < damage; i++) {
			const uint32_t to = number(w, w->n),
				       at = number(w, 4) ? number(w, w->n) : to;

			put(w, w->block[at].addr, number(w, 4), w->block[to].addr);
		}
		for (uint32_t i = 0; i < w->n; i++)
			bytes += w->block[i].size;
		find(w);
		check_sums(w, bytes);
		free_world(w);
	}
}

/* Two lists that share their end, one that runs into a ring, blocks that point to themselves. */
static void test_shared(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct heap_world *w = world(*width, 5);
		uint64_t node[3000], bytes = 0;

		for (int i = 0; i < 3000; i++) {
			node[i] = block(w, 9);
			bytes += 9ull * *width;
		}
		for (int i = 0; i < 999; i++)
			put(w, node[i], 0, node[i + 1]);
		for (int i = 1000; i < 1400; i++)
			put(w, node[i], 0, i == 1399 ? node[500] : node[i + 1]);
		for (int i = 2000; i < 2400; i++)
			put(w, node[i], 0, i == 2399 ? node[2100] : node[i + 1]);
		for (int i = 2400; i < 3000; i++)
			put(w, node[i], 0, node[i]);
		find(w);
		check_sums(w, bytes);
		expect(w, "singly", 3, 1800);
		free_world(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lists),   cmocka_unit_test(test_trees),
	    cmocka_unit_test(test_hash),    cmocka_unit_test(test_radix),
	    cmocka_unit_test(test_array),   cmocka_unit_test(test_random),
	    cmocka_unit_test(test_damaged), cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
