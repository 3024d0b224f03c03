/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where jemalloc 5.3 keeps its things, without symbols.  The radix tree's root is 2 MiB or
 * 256 KiB of .bss; an entry that leads to a leaf that leads to an extent that says its own address
 * gives the root away.  Arenas know their index and follow each other in a table; the tables of
 * size classes must agree with each other.  Offsets: struct arena_s, tcache_slow_s, tcache_s,
 * cache_bin_s of 5.3.0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/chain.h"
#include "leaks/jemalloc.h"
#include "leaks/scan.h"

#define MAX_ARENAS 4094 /* MALLOCX_ARENA_LIMIT - 1 */
#define MAX_KEYS   256	/* distinct root indexes that are tried */

/* struct arena_s */
#define ARENA_INTERNAL 56    /* stats.internal: 24 + 32 */
#define ARENA_LARGE    976   /* stats.lstats: 24 + 952; 48 bytes each: nmalloc, ndalloc, ... */
#define ARENA_TCACHES  10392 /* first tcache_slow_t */
#define ARENA_IND      78928
#define ARENA_BASE     78936
#define ARENA_BINS     78952
#define LARGE_STATS    48
#define BIN_SIZE       224
#define BIN_CURREGS    136 /* stats.curregs: 112 + 24 */

/* struct base_s and base_block_s */
#define BASE_BLOCKS    160
#define BASE_ALLOCATED 3880

/* struct tcache_slow_s */
#define SLOW_PREV  8
#define SLOW_ARENA 40
#define SLOW_DYN   160
#define SLOW_CACHE 168
#define CACHE_BINS 73 /* TCACHE_NBINS_MAX */

struct cache_bin {
	uint64_t head, requests;
	uint16_t low_water, full, empty, pad[1];
};

struct cache {
	uint64_t slow;
	struct cache_bin bins[CACHE_BINS];
};
_Static_assert(sizeof(struct cache) == 1760, "as in jemalloc 5.3");

/* rtree_levels of rtree.h for LG_VADDR 48 and 57. */
static const struct je_tree trees[] = {
    {30, 0, 1ul << 18, 0, 1ul << 18, 1},
    {42, 27, 1ul << 15, 1ul << 15, 1ul << 15, 2},
};

struct search {
	struct je *je;
	uint64_t key[MAX_KEYS]; /* root indexes of writable memory */
	size_t n;
};

static uint64_t word_at(struct je *je, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(je->img, addr, &word) ? word : 0;
}

static bool extent_says(struct je *je, uint64_t edata, uint64_t page)
{
	struct je_edata e;

	return image_read_all(je->img, edata, &e, sizeof(e)) && (e.addr & ~(JE_PAGE - 1)) == page &&
	       e.size_esn >= JE_PAGE && je_state(&e) <= JE_MERGING && je_szind(&e) <= JE_CLASSES;
}

/* Does @leaf describe pages from @base on? */
static bool valid_leaf(struct je *je, uint64_t leaf, uint64_t base)
{
	const struct je_tree *t = je->tree;
	uint64_t words[4096], n = t->leaf_elements * t->leaf_words;

	for (uint64_t i = 0; i < n; i += 4096) {
		if (!image_read_all(je->img, leaf + i * 8, words, sizeof(words)))
			return false;
		for (uint64_t j = 0; j < 4096; j += t->leaf_words) {
			uint64_t edata = je_leaf_edata(words[j], t);
			uint64_t page = base + (i + j) / t->leaf_words * JE_PAGE;

			if (!edata)
				continue;
			if (!scan_writable(je->img, edata))
				return false;
			if (extent_says(je, edata, page))
				return true;
		}
	}
	return false;
}

/* Does a leaf or node below the root describe pages from @base on? */
static bool valid_child(struct je *je, uint64_t child, uint64_t base)
{
	const struct je_tree *t = je->tree;
	uint64_t part[512];

	if (child % 64 || !scan_writable(je->img, child))
		return false;
	if (!t->node_shift)
		return valid_leaf(je, child, base);
	for (uint64_t i = 0; i < t->node_words; i += 512) {
		if (!image_read_all(je->img, child + i * 8, part, sizeof(part)))
			return false;
		for (uint64_t j = 0; j < 512; j++) {
			if (part[j])
				return part[j] % 64 == 0 && scan_writable(je->img, part[j]) &&
				       valid_leaf(je, part[j], base + ((i + j) << t->node_shift));
		}
	}
	return false;
}

/* A pointer to a leaf may also be elsewhere: the root has nothing but children. */
static bool only_children(const struct scan_data *data, uint64_t root, const struct je_tree *t)
{
	const uint64_t *words = data->words + (root - data->start) / 8;
	uint64_t bytes = 8 * (t->node_shift ? t->node_words : t->leaf_elements * t->leaf_words);

	for (uint64_t i = 0; i < t->root_words; i++) {
		if (words[i] &&
		    (words[i] % 64 || !scan_all_writable(data->img, words[i], words[i] + bytes)))
			return false;
	}
	return true;
}

static int find_root(const struct scan_data *data, void *arg)
{
	struct search *s = arg;
	const struct je_tree *t = s->je->tree;
	uint64_t end = data->start + data->n * 8;

	for (size_t i = 0; data->n >= t->root_words && i < data->n; i++) {
		uint64_t child = data->words[i], at = data->start + i * 8;

		for (size_t k = 0; child && k < s->n; k++) {
			uint64_t root = at - s->key[k] * 8;

			if (root < data->start || root + t->root_words * 8 > end ||
			    !valid_child(s->je, child, s->key[k] << t->root_shift) ||
			    !only_children(data, root, t))
				continue;
			s->je->root = root;
			return 1;
		}
	}
	return 0;
}

static void collect_keys(struct search *s)
{
	unsigned shift = s->je->tree->root_shift;

	s->n = 0;
	vec_for_each (&s->je->img->maps, m) {
		uint64_t last = (m->end - 1) >> shift;

		for (uint64_t k = m->start >> shift; k <= last && s->n < MAX_KEYS; k++) {
			if (m->write && !m->shared && (!s->n || s->key[s->n - 1] != k))
				s->key[s->n++] = k;
		}
	}
}

static bool valid_arena(struct je *je, uint64_t addr, unsigned index)
{
	uint32_t ind;
	uint64_t base;

	return addr % 64 == 0 && scan_writable(je->img, addr) &&
	       image_read_all(je->img, addr + ARENA_IND, &ind, sizeof(ind)) && ind == index &&
	       image_word(je->img, addr + ARENA_BASE, &base) && scan_writable(je->img, base) &&
	       word_at(je, base + BASE_BLOCKS);
}

/* The table begins with arena 0, and every entry of it is empty or an arena of that index. */
static bool valid_arenas(struct je *je, const uint64_t *words)
{
	if (!words[0])
		return false;
	for (unsigned i = 0; i < MAX_ARENAS; i++) {
		if (words[i] && !valid_arena(je, words[i], i))
			return false;
	}
	return true;
}

static bool valid_bins(const struct je_bin *bin)
{
	for (int i = 0; i < JE_BINS; i++) {
		const struct je_bin *b = &bin[i];

		if (!b->reg_size || !b->slab_size || b->slab_size % JE_PAGE || b->nregs > 512 ||
		    b->nregs != b->slab_size / b->reg_size || !b->n_shards || b->n_shards > 64 ||
		    b->bits != b->nregs || b->groups != (b->nregs + 63) / 64 ||
		    (i && b->reg_size <= bin[i - 1].reg_size))
			return false;
	}
	return true;
}

/* Sizes of all classes: the small ones are the bins', and each is larger than the one before. */
static bool valid_sizes(const struct je_bin *bin, const uint64_t *words)
{
	for (int i = 0; i < JE_BINS; i++) {
		if (words[i] != bin[i].reg_size)
			return false;
	}
	for (int i = JE_BINS; i < JE_CLASSES; i++) {
		if (words[i] <= words[i - 1] || words[i] % JE_PAGE)
			return false;
	}
	return true;
}

static bool in_data(const struct scan_data *d, size_t i, size_t bytes)
{
	return i + bytes / 8 <= d->n;
}

static int find_tables(const struct scan_data *d, void *arg)
{
	struct je *je = ((struct search *)arg)->je;
	bool bins = false, sizes = false, arenas = false;

	if (je->root < d->start || je->root >= d->start + d->n * 8)
		return 0;
	for (size_t i = 0; !bins && in_data(d, i, sizeof(je->bin)); i++) {
		memcpy(je->bin, d->words + i, sizeof(je->bin));
		bins = valid_bins(je->bin);
	}
	for (size_t i = 0; bins && !sizes && in_data(d, i, sizeof(je->class_size)); i++) {
		memcpy(je->class_size, d->words + i, sizeof(je->class_size));
		sizes = valid_sizes(je->bin, je->class_size);
	}
	for (size_t i = 0; sizes && !arenas && in_data(d, i, MAX_ARENAS * 8ul); i++) {
		je->arenas_at = d->start + i * 8;
		arenas = valid_arenas(je, d->words + i);
	}
	return arenas ? 1 : -ENOTSUP;
}

int je_find(struct je *je)
{
	struct search s = {.je = je};
	int ret = 0;

	if (strcmp(je->img->arch->name, "x86_64") != 0)
		return -ENOENT;
	for (size_t i = 0; !ret && i < sizeof(trees) / sizeof(trees[0]); i++) {
		je->tree = &trees[i];
		collect_keys(&s);
		ret = scan_modules(je->img, find_root, &s);
	}
	if (ret == 1)
		ret = scan_modules(je->img, find_tables, &s);
	else if (!ret)
		ret = scan_has_library(je->img, "jemalloc") ? -ENOTSUP : -ENOENT;
	return ret > 0 ? 0 : ret;
}

static void take_counters(struct je *je, struct je_arena *a)
{
	uint64_t bin = a->addr + ARENA_BINS;

	for (int i = 0; i < JE_BINS; i++) {
		for (uint32_t k = 0; k < je->bin[i].n_shards; k++, bin += BIN_SIZE)
			a->regions[i] += (int64_t)word_at(je, bin + BIN_CURREGS);
	}
	for (int i = 0; i < JE_CLASSES - JE_BINS; i++) {
		uint64_t stats = a->addr + ARENA_LARGE + i * LARGE_STATS;

		a->large[i] = (int64_t)(word_at(je, stats) - word_at(je, stats + 8));
	}
	a->internal = (int64_t)word_at(je, a->addr + ARENA_INTERNAL);
}

/* Blocks that jemalloc maps for its own structures. */
static int own_base(struct je *je, const struct je_arena *a)
{
	uint64_t base = word_at(je, a->addr + ARENA_BASE), at = word_at(je, base + BASE_BLOCKS);
	struct chain c = {0};
	int ret = 0;

	je->heap->metadata_bytes += word_at(je, base + BASE_ALLOCATED);
	while (!ret && at) {
		uint64_t size = word_at(je, at);

		if (!size || size % JE_PAGE || !scan_all_writable(je->img, at, at + size) ||
		    chain_cycles(&c, at)) {
			heap_damage(je->heap, at, "list of jemalloc's own blocks leads astray");
			heap_doubt(je->heap, "a list of jemalloc's own blocks leads astray");
			break;
		}
		ret = heap_own(je->heap, at, at + size, HEAP_METADATA);
		at = word_at(je, at + 8);
	}
	return ret;
}

static int take_cache_bin(struct je *je, const struct cache_bin *b)
{
	uint16_t n = (uint16_t)(b->empty - (uint16_t)b->head) / 8;
	uint64_t regions[UINT16_MAX / 8 + 1];

	if (!b->head || !n)
		return 0;
	if (!image_read_all(je->img, b->head, regions, n * 8ul)) {
		heap_damage(je->heap, b->head, "a thread's cache cannot be read");
		heap_doubt(je->heap, "a thread's cache cannot be read");
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (addr_list_push(&je->cached, regions[i]))
			return -ENOMEM;
	}
	return 0;
}

static int take_cache(struct je *je, const struct je_arena *a, uint64_t slow)
{
	uint64_t at = word_at(je, slow + SLOW_CACHE), dyn = word_at(je, slow + SLOW_DYN);
	struct cache cache;
	int ret = dyn ? addr_list_push(&je->internal, dyn) : 0;

	if (word_at(je, slow + SLOW_ARENA) != a->addr ||
	    !image_read_all(je->img, at, &cache, sizeof(cache)) || cache.slow != slow)
		return -ENOTSUP;
	for (int i = 0; !ret && i < CACHE_BINS; i++)
		ret = take_cache_bin(je, &cache.bins[i]);
	return ret;
}

/* The ring of an arena's caches, each of which points back. */
static int take_caches(struct je *je, const struct je_arena *a)
{
	uint64_t first = word_at(je, a->addr + ARENA_TCACHES), at = first, next;
	int ret = 0;

	while (at && !ret) {
		ret = take_cache(je, a, at);
		next = word_at(je, at);
		if (word_at(je, next + SLOW_PREV) != at) {
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

	for (unsigned i = 0; !ret && i < MAX_ARENAS; i++) {
		struct je_arena a = {.addr = word_at(je, je->arenas_at + i * 8), .index = i};

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
