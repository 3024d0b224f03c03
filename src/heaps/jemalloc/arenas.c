/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads jemalloc's arenas: their counters, jemalloc's own mappings, and the threads' caches. */
#include <errno.h>
#include "heaps/chain.h"
#include "heaps/jemalloc/jemalloc.h"
#include "heaps/scan.h"

#define MAX_CACHED (UINT16_MAX / 8 + 1)

/* cache_bin_t from 5.3 on; a tcache_t is a pointer to tcache_slow_t and these. */
struct cache_bin {
	uint64_t head, requests;
	uint16_t low_water, full, empty, pad[1];
};

/* Before 5.3.  The cached regions are stored below .avail. */
struct old_cache_bin {
	uint32_t low_water, cached;
	uint64_t requests, avail;
};

#define OLD_SMALL 16 /* tcache_t.bins_small */

static uint64_t first_bin(struct je *je, const struct je_arena *a, unsigned class, uint64_t next)
{
	if (je->layout->bins_apart)
		return je_word(je, a->addr + je->layout->arena_bins + class * 8ul);
	return class ? next : a->addr + je->layout->arena_bins;
}

static uint32_t shards(const struct je *je, unsigned class)
{
	return je->layout->one_shard ? 1 : je->bin[class].n_shards;
}

static void take_counters(struct je *je, struct je_arena *a)
{
	const struct je_layout *l = je->layout;
	uint64_t bin = 0;

	for (unsigned i = 0; i < l->bins; i++) {
		bin = first_bin(je, a, i, bin);
		for (uint32_t k = 0; k < shards(je, i); k++, bin += l->bin_size)
			a->regions[i] += (int64_t)je_word(je, bin + l->bin_curregs);
	}
	for (unsigned i = 0; i < JE_CLASSES - l->bins; i++) {
		uint64_t stats = a->addr + l->arena_large + i * l->large_size;

		a->large[i] = (int64_t)(je_word(je, stats) - je_word(je, stats + 8));
	}
	a->internal = (int64_t)je_word(je, a->addr + l->arena_internal);
}

/* Marks the memory that jemalloc maps for its own structures. */
static int own_base(struct je *je, const struct je_arena *a)
{
	uint64_t base = je_word(je, a->addr + je->layout->arena_base),
		 at = je_word(je, base + je->layout->base_blocks);
	struct chain c = {0};
	int ret = 0;

	je->heap->metadata_bytes += je_word(je, base + je->layout->base_allocated);
	while (!ret && at) {
		uint64_t size = je_word(je, at);

		if (!size || size % 4096 || !scan_all_writable(je->img, at, at + size) ||
		    chain_cycles(&c, at)) {
			heap_damage(je->heap, at, "list of jemalloc's own blocks is broken");
			heap_doubt(je->heap, "a list of jemalloc's own blocks is broken");
			break;
		}
		ret = heap_own(je->heap, at, at + size, HEAP_METADATA);
		at = je_word(je, at + 8);
	}
	return ret;
}

static int take_cached(struct je *je, uint64_t first, uint32_t n)
{
	uint64_t regions[MAX_CACHED];

	if (!n)
		return 0;
	if (n > MAX_CACHED || !image_read_all(je->img, first, regions, n * 8ul)) {
		heap_damage(je->heap, first, "a thread's cache cannot be read");
		heap_doubt(je->heap, "a thread's cache cannot be read");
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (addr_list_push(&je->cached, regions[i]))
			return -ENOMEM;
	}
	return 0;
}

static int take_cache_bins(struct je *je, uint64_t slow)
{
	uint64_t words[2], at; /* dyn_alloc, tcache */
	int ret;

	if (!image_read_all(je->img, slow + je->layout->cache_dyn, words, sizeof(words)))
		return -ENOTSUP;
	ret = words[0] ? addr_list_push(&je->internal, words[0]) : 0;
	at = words[1];
	if (je_word(je, at) != slow)
		return -ENOTSUP;
	at += sizeof(uint64_t);
	for (unsigned i = 0; !ret && i < je->layout->cache_bins;
	     i++, at += sizeof(struct cache_bin)) {
		struct cache_bin b;

		if (!image_read_all(je->img, at, &b, sizeof(b)))
			return -ENOTSUP;
		if (b.head)
			ret = take_cached(je, b.head, (uint16_t)(b.empty - (uint16_t)b.head) / 8);
	}
	return ret;
}

/*
 * The stacks of all bins are in one block, that of the smallest bin first.  An explicit tcache is
 * also in that block; a thread's automatic tcache is in its tsd_t, as are its tickers.
 */
static int take_old_internal(struct je *je, uint64_t at, const struct old_cache_bin *first)
{
	uint64_t end = at + je->layout->cache_large +
		       (JE_CLASSES - je->layout->bins) * sizeof(struct old_cache_bin);
	uint32_t slots = 2 * je->bin[0].nregs;
	uint64_t block, tickers;

	if (!first->avail)
		return 0;
	slots = slots < 20 ? 20 : slots > 200 ? 200 : slots;
	block = first->avail - slots * 8ul;
	if (block == end)
		return addr_list_push(&je->internal, at);
	tickers = je_word(je, at - je->layout->cache_tickers);
	if (tickers && addr_list_push(&je->internal, tickers))
		return -ENOMEM;
	return addr_list_push(&je->internal, block);
}

static int take_old_bins(struct je *je, uint64_t at)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < JE_CLASSES; i++) {
		uint64_t bins = i < je->layout->bins ? OLD_SMALL : je->layout->cache_large;
		struct old_cache_bin b;

		if (!image_read_all(
			je->img,
			at + bins + (i < je->layout->bins ? i : i - je->layout->bins) * sizeof(b),
			&b, sizeof(b)))
			return -ENOTSUP;
		if (!i)
			ret = take_old_internal(je, at, &b);
		if (!ret)
			ret = take_cached(je, b.avail - b.cached * 8ul, b.cached);
	}
	return ret;
}

static int take_cache(struct je *je, const struct je_arena *a, uint64_t at)
{
	if (je_word(je, at + je->layout->cache_arena) != a->addr)
		return -ENOTSUP;
	return je->layout->cache_next ? take_old_bins(je, at) : take_cache_bins(je, at);
}

/* Follows the ring of an arena's caches, checking the links back. */
static int take_caches(struct je *je, const struct je_arena *a)
{
	const uint64_t link = je->layout->cache_next;
	uint64_t first = je_word(je, a->addr + je->layout->arena_caches), at = first, next;
	int ret = 0;

	while (at && !ret) {
		ret = take_cache(je, a, at);
		next = je_word(je, at + link);
		if (je_word(je, next + link + 8) != at) {
			heap_damage(je->heap, at, "ring of an arena's caches is broken");
			return -ENOTSUP;
		}
		at = next == first ? 0 : next;
	}
	return ret;
}

int je_take_arenas(struct je *je)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < JE_ARENAS; i++) {
		struct je_arena a = {.addr = je_word(je, je->arenas_at + i * 8), .index = i};

		if (!a.addr)
			continue;
		take_counters(je, &a);
		ret = own_base(je, &a);
		if (!ret)
			ret = take_caches(je, &a);
		if (!ret)
			ret = vec_push(&je->arenas, a);
	}
	je->heap->arenas = (uint32_t)je->arenas.n;
	return ret;
}
