/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads jemalloc's arenas: their counters, jemalloc's own mappings, and the threads' caches. */
#include <errno.h>
#include "heaps/chain.h"
#include "heaps/jemalloc/jemalloc.h"
#include "heaps/scan.h"

#define LARGE_STATS 48
#define MAX_CACHED  (UINT16_MAX / 8 + 1)

/* struct tcache_slow_s of 5.3 */
#define SLOW_DYN   160
#define SLOW_CACHE 168
#define CACHE_BINS 73 /* TCACHE_NBINS_MAX */

struct cache_bin_5_3 {
	uint64_t head, requests;
	uint16_t low_water, full, empty, pad[1];
};

struct cache_5_3 {
	uint64_t slow;
	struct cache_bin_5_3 bins[CACHE_BINS];
};
_Static_assert(sizeof(struct cache_5_3) == 1760, "as in jemalloc 5.3");

#define TSD_TICKERS 48 /* in 5.2, offset of tsd_t.arenas_tdata below tcache */

/* The cached regions are stored below .avail. */
struct cache_bin_5_2 {
	uint32_t low_water, cached;
	uint64_t requests, avail;
};

struct cache_5_2 {
	uint64_t prof, ticker;
	struct cache_bin_5_2 small[JE_BINS];
	uint64_t links[15];
	struct cache_bin_5_2 large[JE_CLASSES - JE_BINS];
};
_Static_assert(sizeof(struct cache_5_2) == 5704, "as in jemalloc 5.2");

static uint64_t first_bin(struct je *je, const struct je_arena *a, int class, uint64_t next)
{
	if (je->layout->bins_apart)
		return je_word(je, a->addr + je->layout->arena_bins + class * 8ul);
	return class ? next : a->addr + je->layout->arena_bins;
}

static void take_counters(struct je *je, struct je_arena *a)
{
	const struct je_layout *l = je->layout;
	uint64_t bin = 0;

	for (int i = 0; i < JE_BINS; i++) {
		bin = first_bin(je, a, i, bin);
		for (uint32_t k = 0; k < je->bin[i].n_shards; k++, bin += l->bin_size)
			a->regions[i] += (int64_t)je_word(je, bin + l->bin_curregs);
	}
	for (int i = 0; i < JE_CLASSES - JE_BINS; i++) {
		uint64_t stats = a->addr + l->arena_large + i * LARGE_STATS;

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

		if (!size || size % JE_PAGE || !scan_all_writable(je->img, at, at + size) ||
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

static int take_cache_5_3(struct je *je, uint64_t slow)
{
	uint64_t at = je_word(je, slow + SLOW_CACHE), dyn = je_word(je, slow + SLOW_DYN);
	struct cache_5_3 cache;
	int ret = dyn ? addr_list_push(&je->internal, dyn) : 0;

	if (!image_read_all(je->img, at, &cache, sizeof(cache)) || cache.slow != slow)
		return -ENOTSUP;
	for (int i = 0; !ret && i < CACHE_BINS; i++) {
		const struct cache_bin_5_3 *b = &cache.bins[i];

		if (b->head)
			ret =
			    take_cached(je, b->head, (uint16_t)(b->empty - (uint16_t)b->head) / 8);
	}
	return ret;
}

/*
 * The stacks of all bins are in one block, that of the smallest bin first.  An explicit tcache is
 * also in that block; a thread's automatic tcache is in its tsd_t, as are its tickers.
 */
static int take_internal_5_2(struct je *je, uint64_t at, const struct cache_5_2 *cache)
{
	uint32_t slots = 2 * je->bin[0].nregs;
	uint64_t block, tickers;

	if (!cache->small[0].avail)
		return 0;
	slots = slots < 20 ? 20 : slots > 200 ? 200 : slots;
	block = cache->small[0].avail - slots * 8ul;
	if (block == at + sizeof(*cache))
		return addr_list_push(&je->internal, at);
	tickers = je_word(je, at - TSD_TICKERS);
	if (tickers && addr_list_push(&je->internal, tickers))
		return -ENOMEM;
	return addr_list_push(&je->internal, block);
}

static int take_cache_5_2(struct je *je, uint64_t at)
{
	struct cache_5_2 cache;
	int ret;

	if (!image_read_all(je->img, at, &cache, sizeof(cache)))
		return -ENOTSUP;
	ret = take_internal_5_2(je, at, &cache);
	for (int i = 0; !ret && i < JE_CLASSES; i++) {
		const struct cache_bin_5_2 *b =
		    i < JE_BINS ? &cache.small[i] : &cache.large[i - JE_BINS];

		ret = take_cached(je, b->avail - b->cached * 8ul, b->cached);
	}
	return ret;
}

static int take_cache(struct je *je, const struct je_arena *a, uint64_t at)
{
	if (je_word(je, at + je->layout->cache_arena) != a->addr)
		return -ENOTSUP;
	return je->layout->cache_next ? take_cache_5_2(je, at) : take_cache_5_3(je, at);
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
