/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the data of gperftools' tcmalloc without symbols, in a module that has the names of its
 * settings.  The page map's root is 1 MiB of .bss.  It is recognized by an entry that leads to a
 * leaf, which leads to a span that has the matching page number.  The table of classes must be
 * ordered, the central lists have their own numbers, and a thread's cache repeats the sizes of the
 * classes.  Offsets: class SizeMap, CentralFreeList, ThreadCache of gperftools with 8 KiB pages.
 * What differs between versions is in a table, and is found out by trying.
 */
#include <errno.h>
#include <string.h>
#include "heaps/chain.h"
#include "heaps/scan.h"
#include "heaps/tcmalloc/tcmalloc.h"
#include "lib/human.h"

/* class CentralFreeList, padded */
#define CENTRAL_SIZE	1216
#define CENTRAL_CLASS	8
#define CENTRAL_EMPTY	16 /* two consecutive spans that are list heads */
#define CENTRAL_SPANS	112
#define CENTRAL_COUNTER 120
#define CENTRAL_SLOTS	128
#define CENTRAL_USED	1152
#define MAX_SLOTS	64

/* class SizeMap up to class_to_pages_; num_size_classes follows directly or later. */
struct size_map {
	uint8_t class_of[2172];
	int32_t batch[TC_CLASSES];
	int32_t size[TC_CLASSES];
	uint32_t pad;
	uint64_t pages[TC_CLASSES];
};
_Static_assert(sizeof(struct size_map) == 4224, "as in gperftools");

/* Since 2.11, SizeMap has min_span_size_in_pages_ before the number of classes; ThreadCache has lost
 * its thread id by 2.16.  Of two that agree in the former, the first one that fits is used. */
static const struct tc_layout layouts[] = {
    {"gperftools 2.8 to 2.10", .classes = 4224, .cache_next = 4144},
    {"gperftools 2.16 to 2.18", .classes = 4232, .cache_next = 4128},
    {"gperftools before 2.16", .classes = 4232, .cache_next = 4144},
};
#define LAYOUT_COUNT (sizeof(layouts) / sizeof(layouts[0]))

struct cache_list {
	uint64_t first;
	uint32_t length, low_water, max_length, overages;
	int32_t size, pad;
};

static uint64_t word_at(struct tc *tc, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(tc->img, addr, &word) ? word : 0;
}

/* Finds which 2 GiB of address space @leaf describes, from spans that match their position in it.
 * Return: false if it is not a leaf. */
static bool leaf_block(struct tc *tc, struct image_view *v, uint64_t leaf, uint64_t *block)
{
	uint64_t word;

	for (uint64_t at = leaf; (word = scan_nonzero(tc->img, v, &at, leaf + TC_LEAF_BYTES));
	     at += 8) {
		uint64_t i = (at - leaf) / 8;
		struct tc_span s;

		if (word % 8 || !scan_writable(tc->img, word) ||
		    !image_read_all(tc->img, word, &s, sizeof(s)))
			return false;
		*block = (s.start - i) >> TC_LEAF_SHIFT;
		/* A leaf also has entries for the last and inner pages of spans. */
		if ((s.start - i) % (1ull << TC_LEAF_SHIFT) == 0 && *block < TC_ROOT_WORDS &&
		    s.pages && s.pages < 1ull << 35 && tc_location(&s) <= TC_RETURNED &&
		    s.class < TC_CLASSES)
			return true;
	}
	return false;
}

static bool may_be_leaf(const struct image *img, uint64_t at)
{
	return at % 8 == 0 && scan_all_writable(img, at, at + TC_LEAF_BYTES);
}

/* A pointer to a leaf can also be elsewhere, but the root contains nothing but leaves. */
static bool only_leaves(const struct scan_data *data, uint64_t root)
{
	const uint64_t *words = data->words + (root - data->start) / 8;

	for (uint64_t i = 0; i < TC_ROOT_WORDS; i++) {
		if (words[i] && !may_be_leaf(data->img, words[i]))
			return false;
	}
	return true;
}

static int find_root(const struct scan_data *data, void *arg)
{
	struct image_view view = {0};
	struct tc *tc = arg;
	uint64_t block = 0;
	bool found = false;

	for (size_t i = 0; data->n >= TC_ROOT_WORDS && i < data->n && !found; i++) {
		uint64_t leaf = data->words[i];

		if (!leaf || !may_be_leaf(data->img, leaf) ||
		    !leaf_block(tc, &view, leaf, &block) || block > i ||
		    i - block + TC_ROOT_WORDS > data->n)
			continue;
		tc->root = data->start + (i - block) * 8;
		found = only_leaves(data, tc->root);
	}
	image_view_free(&view);
	return found;
}

static bool valid_size_map(const struct size_map *m, uint64_t classes)
{
	if (m->size[0] || m->class_of[0] != 1)
		return false;
	for (uint64_t c = 1; c < classes; c++) {
		if (m->size[c] <= m->size[c - 1] || m->size[c] % 8 || m->batch[c] < 1 ||
		    m->pages[c] > 1024 || m->pages[c] << TC_PAGE_SHIFT < (uint64_t)m->size[c])
			return false;
	}
	return true;
}

static bool links_back(struct tc *tc, uint64_t head, const uint64_t *span)
{
	return word_at(tc, span[2] + 24) == head && word_at(tc, span[3] + 16) == head;
}

/* A thread that was stopped while it changed a list has not linked it back yet; most of the lists are linked back in any case. */
static bool valid_central(struct tc *tc, uint64_t at, const uint64_t *words)
{
	size_t changing = 0;

	for (unsigned c = 0; c < tc->classes; c++) {
		if (words[c * CENTRAL_SIZE / 8 + CENTRAL_CLASS / 8] != c)
			return false;
	}
	for (unsigned c = 0; c < tc->classes; c++) {
		const uint64_t *empty = words + (c * CENTRAL_SIZE + CENTRAL_EMPTY) / 8;
		uint64_t head = at + c * CENTRAL_SIZE + CENTRAL_EMPTY;

		changing += !links_back(tc, head, empty);
		changing += !links_back(tc, head + sizeof(struct tc_span), empty + 6);
	}
	return changing <= tc->img->threads.n && changing < tc->classes;
}

static bool valid_cache(struct tc *tc, uint64_t at)
{
	struct cache_list lists[TC_CLASSES];

	if (at % 8 || !scan_writable(tc->img, at) ||
	    !image_read_all(tc->img, at, lists, sizeof(lists)))
		return false;
	for (unsigned c = 0; c < tc->classes; c++) {
		if (lists[c].size != tc->size[c])
			return false;
	}
	return true;
}

static uint64_t cache_prev(const struct tc *tc)
{
	return tc->layout->cache_next + 8;
}

static uint64_t first_cache(struct tc *tc, uint64_t cache)
{
	struct chain c = {0};

	while (!chain_cycles(&c, cache)) {
		uint64_t before = word_at(tc, cache + cache_prev(tc));

		if (!before)
			return cache;
		if (!valid_cache(tc, before))
			return 0;
		cache = before;
	}
	return 0;
}

static bool take_classes(struct tc *tc, const uint64_t *words)
{
	uint64_t classes = words[tc->layout->classes / 8];
	struct size_map m;

	if (classes < 16 || classes > TC_CLASSES)
		return false;
	memcpy(&m, words, sizeof(m));
	if (!valid_size_map(&m, classes))
		return false;
	tc->classes = (unsigned)classes;
	memcpy(tc->size, m.size, sizeof(m.size));
	memcpy(tc->pages, m.pages, sizeof(m.pages));
	return true;
}

static bool find_classes(const struct scan_data *d, struct tc *tc)
{
	for (size_t k = 0; k < LAYOUT_COUNT; k++) {
		tc->layout = &layouts[k];
		for (size_t i = 0; i + tc->layout->classes / 8 < d->n; i++) {
			if (take_classes(tc, d->words + i))
				return true;
		}
	}
	return false;
}

/* Do the links of @cache lead to caches that lead back? */
static bool valid_links(struct tc *tc, uint64_t cache)
{
	uint64_t next = word_at(tc, cache + tc->layout->cache_next),
		 before = word_at(tc, cache + cache_prev(tc));

	return (!next || (valid_cache(tc, next) && word_at(tc, next + cache_prev(tc)) == cache)) &&
	       (!before ||
		(valid_cache(tc, before) && word_at(tc, before + tc->layout->cache_next) == cache));
}

/* Chooses among the layouts that agree about the classes the one with which the links of @cache are
 * valid. */
static bool choose_links(struct tc *tc, uint64_t cache)
{
	const struct tc_layout *before = tc->layout;

	for (size_t k = 0; k < LAYOUT_COUNT; k++) {
		tc->layout = &layouts[k];
		if (tc->layout->classes == before->classes && valid_links(tc, cache))
			return true;
	}
	tc->layout = before;
	return false;
}

static int find_tables(const struct scan_data *d, void *arg)
{
	struct tc *tc = arg;

	if (tc->root < d->start || tc->root >= d->start + d->n * 8)
		return 0;
	if (!find_classes(d, tc))
		return -ENOTSUP;
	for (size_t i = 0; !tc->central && i + TC_CLASSES * CENTRAL_SIZE / 8 <= d->n; i++) {
		if (valid_central(tc, d->start + i * 8, d->words + i))
			tc->central = d->start + i * 8;
	}
	for (size_t i = 0; tc->central && !tc->caches && i < d->n; i++) {
		if (d->words[i] && valid_cache(tc, d->words[i]) && choose_links(tc, d->words[i]))
			tc->caches = first_cache(tc, d->words[i]);
	}
	return tc->caches ? 1 : -ENOTSUP;
}

int tc_find(struct tc *tc)
{
	int ret;

	ret = scan_modules_with(tc->img, "TCMALLOC_", TC_ROOT_WORDS * 8, find_root, tc);
	if (ret == 1)
		ret = scan_modules(tc->img, find_tables, tc);
	else if (!ret)
		ret = scan_has_library(tc->img, "tcmalloc") ? -ENOTSUP : -ENOENT;
	return ret > 0 ? 0 : ret;
}

static int take_cache(struct tc *tc, uint64_t cache)
{
	struct cache_list lists[TC_CLASSES];

	if (!image_read_all(tc->img, cache, lists, sizeof(lists)))
		return 0;
	for (unsigned c = 1; c < tc->classes; c++) {
		uint64_t at = lists[c].first;
		struct chain chain = {0};
		uint32_t n = 0;

		for (; at && n <= lists[c].length && !chain_cycles(&chain, at);
		     at = word_at(tc, at)) {
			n++;
			if (addr_list_push(&tc->cached, at))
				return -ENOMEM;
		}
		if (n != lists[c].length)
			heap_doubt(tc->heap,
				   "a thread's cache does not have the %u block%s of %d bytes that "
				   "it counts",
				   lists[c].length, plural(lists[c].length), tc->size[c]);
	}
	return 0;
}

static int take_caches(struct tc *tc)
{
	uint64_t cache = tc->caches, before = 0;
	int ret = 0;

	while (cache && !ret) {
		if (!valid_cache(tc, cache) || word_at(tc, cache + cache_prev(tc)) != before) {
			heap_damage(tc->heap, cache, "list of threads' caches is broken");
			heap_doubt(tc->heap, "the list of threads' caches is broken");
			return 0;
		}
		ret = take_cache(tc, cache);
		before = cache;
		cache = word_at(tc, cache + tc->layout->cache_next);
	}
	return ret;
}

/* Adds the batches in transfer from one thread's cache to another. */
static int take_transfer(struct tc *tc, uint64_t central)
{
	uint64_t slots[MAX_SLOTS][2];
	int32_t used = 0;

	if (!image_read_all(tc->img, central + CENTRAL_SLOTS, slots, sizeof(slots)) ||
	    !image_read_all(tc->img, central + CENTRAL_USED, &used, sizeof(used)))
		return 0;
	for (int i = 0; i < used && i < MAX_SLOTS; i++) {
		uint64_t at = slots[i][0];
		struct chain c = {0};

		for (; at && !chain_cycles(&c, at); at = word_at(tc, at)) {
			if (addr_list_push(&tc->cached, at))
				return -ENOMEM;
			if (at == slots[i][1])
				break;
		}
	}
	return 0;
}

int tc_take_caches(struct tc *tc)
{
	int ret = take_caches(tc);

	for (unsigned c = 1; !ret && c < tc->classes; c++) {
		uint64_t central = tc->central + c * CENTRAL_SIZE;

		tc->counted[c].spans = word_at(tc, central + CENTRAL_SPANS);
		tc->counted[c].free_objects = word_at(tc, central + CENTRAL_COUNTER);
		ret = take_transfer(tc, central);
	}
	return ret;
}
