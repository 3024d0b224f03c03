/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Edges and dominators of a graph that is large enough for two threads: the same as with one
 * processor, in the same order. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "leaks/retained/dominators.h"
#include "leaks/edges.h"
#include "lib/parallel.h"

#define BLOCKS	(2 * MIN_PARALLEL)
#define HOLDERS 300u
#define START	0x10000000ull
#define LARGE	(3u << 20) /* bytes of some blocks */

static struct world {
	struct heap_block block[BLOCKS];
	uint8_t *bytes;
	size_t n;
	uint64_t random;
	struct image img;
	/* The holders. */
	uint32_t parent[HOLDERS], first[HOLDERS + 1], to[HOLDERS * 3];
	bool weak[HOLDERS];
	uint64_t exact[HOLDERS * 3 / 64 + 1];
} world;

static uint32_t below(struct world *w, uint32_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 20) % n;
}

static size_t read_bytes(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct world *w = img->backend;

	if (addr < START || addr - START >= w->n)
		return 0;
	if (len > w->n - (addr - START))
		len = (size_t)(w->n - (addr - START));
	memcpy(to, w->bytes + (addr - START), len);
	return len;
}

/* All but every other 4 KiB. */
static uint64_t half_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	(void)img;
	if (*addr / 4096 % 2)
		*addr = (*addr / 4096 + 1) * 4096;
	return *addr >= map->end ? 0 : (*addr / 4096 + 1) * 4096;
}

static const struct image_ops ops = {
    .fetch = read_bytes, .present = half_present, .parallel = true};

/* Each block has up to three pointers, some to the middle of blocks. */
static void make_blocks(struct world *w)
{
	const uint32_t word = arch_native()->word_size;
	uint64_t end = START;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		w->block[i].addr = end;
		w->block[i].size = i % 50000 == 777 ? LARGE : 24 + 16 * below(w, 8);
		end += (w->block[i].size + 15) & ~15ull;
	}
	w->n = (size_t)(end - START);
	w->bytes = calloc(1, w->n);
	assert_non_null(w->bytes);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		for (uint32_t k = 1 + below(w, 3); k; k--) {
			const struct heap_block *to = &w->block[below(w, BLOCKS)];
			uint64_t value = to->addr + (below(w, 3) ? 0 : 8);
			uint64_t offset = w->block[i].addr - START +
					  word * below(w, (uint32_t)(w->block[i].size / word));

			memcpy(w->bytes + offset, &value, word);
		}
	}
}

static void make_holders(struct world *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HOLDERS; i++) {
		w->parent[i] = i && below(w, 3) ? below(w, i) : INDEX_NONE;
		w->weak[i] = below(w, 2);
		w->first[i] = n;
		for (uint32_t k = below(w, 4); k; k--) {
			if (below(w, 2))
				w->exact[n / 64] |= 1ull << n % 64;
			w->to[n++] = below(w, BLOCKS);
		}
	}
	w->first[HOLDERS] = n;
}

static int setup(void **state)
{
	struct world *w = &world;
	struct image_map map = {.start = START, .read = true, .write = true, .path = (char *)""};

	w->random = 88172645463325252ull;
	make_blocks(w);
	make_holders(w);
	image_init(&w->img, arch_native(), 0);
	map.end = START + w->n;
	w->img.ops = &ops;
	w->img.backend = w;
	*state = w;
	return vec_push(&w->img.maps, map);
}

static int teardown(void **state)
{
	struct world *w = *state;

	vec_free(&w->img.maps);
	free(w->bytes);
	return 0;
}

static void find_edges(struct world *w, struct graph *g)
{
	struct mp_err err = {0};

	assert_int_equal(graph_init(g, arch_native(), w->block, BLOCKS), 0);
	g->detailed = true;
	assert_int_equal(graph_edges(g, &w->img, &err), 0);
}

/* Allows this thread only one of its processors. */
static void take_one(cpu_set_t *before)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++) {
		if (CPU_ISSET(cpu, before))
			CPU_SET(cpu, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(parallel_parts(), 1);
}

static void give_back(const cpu_set_t *before)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*before), before), 0);
	assert_int_equal(parallel_parts(), CPU_COUNT(before) > 1 ? 2 : 1);
}

/* Each word of the blocks is looked at; only touched pages of large ones. */
static uint64_t count_edges(const struct world *w)
{
	const uint32_t word = arch_native()->word_size;
	uint64_t edges = 0;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint64_t addr = w->block[i].addr;

		for (uint64_t at = 0, last = 0; at + word <= w->block[i].size; at += word) {
			uint64_t value = 0;

			memcpy(&value, w->bytes + (addr - START) + at, word);
			if (w->block[i].size == LARGE && (addr + at) / 4096 % 2)
				continue;
			/* Blocks are in order: two pointers to one in a row are one edge. */
			if (value && (value < addr || value >= addr + w->block[i].size) &&
			    (value & ~15ull) != last) {
				edges++;
				last = value & ~15ull;
			}
		}
	}
	return edges;
}

static void test_edges(void **state)
{
	struct world *w = *state;
	struct graph one, two;
	cpu_set_t before;

	take_one(&before);
	find_edges(w, &one);
	give_back(&before);
	find_edges(w, &two);
	assert_int_equal(one.to.n, count_edges(w));
	assert_int_equal(one.to.n, two.to.n);
	assert_memory_equal(one.to.at, two.to.at, one.to.n * sizeof(*one.to.at));
	assert_memory_equal(one.first, two.first, (BLOCKS + 1) * sizeof(*one.first));
	for (size_t e = 0; e < one.to.n; e++) {
		bool in_one = e / 64 < one.exact.n && one.exact.at[e / 64] >> e % 64 & 1,
		     in_two = e / 64 < two.exact.n && two.exact.at[e / 64] >> e % 64 & 1;

		assert_int_equal(in_one, in_two);
	}
	graph_free(&one);
	graph_free(&two);
}

static void test_dominators(void **state)
{
	struct world *w = *state;
	const struct dom_holders h = {HOLDERS, w->parent, w->weak, w->first, w->to, w->exact};
	struct dominators one, two;
	struct graph g;
	cpu_set_t before;
	size_t bytes;

	take_one(&before);
	find_edges(w, &g);
	assert_int_equal(dominators_find(&one, &g, &h), 0);
	graph_free(&g);
	give_back(&before);
	find_edges(w, &g);
	assert_int_equal(dominators_find(&two, &g, &h), 0);
	assert_true(one.n > MIN_PARALLEL);
	assert_int_equal(one.n, two.n);
	bytes = one.n * sizeof(uint32_t);
	assert_memory_equal(one.node, two.node, bytes);
	assert_memory_equal(one.count, two.count, bytes);
	assert_memory_equal(one.reached, two.reached, bytes);
	assert_memory_equal(one.from_first, two.from_first, bytes);
	assert_memory_equal(one.from, two.from, one.from_first[one.n] * sizeof(uint32_t));
	assert_memory_equal(one.place, two.place, (BLOCKS + HOLDERS + 1) * sizeof(uint32_t));
	assert_memory_equal(one.bytes, two.bytes, one.n * sizeof(uint64_t));
	assert_memory_equal(one.exact, two.exact, one.n * sizeof(uint64_t));
	dominators_free(&one);
	dominators_free(&two);
	graph_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_edges),
	    cmocka_unit_test(test_dominators),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
