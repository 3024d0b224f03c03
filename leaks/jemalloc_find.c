/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where jemalloc keeps its things, without symbols.  The radix tree's root is 2 MiB or 256 KiB of
 * .bss; an entry that leads to a leaf that leads to an extent that says its own address gives the
 * root away.  Arenas follow each other in a table, and their bases know their index: by this the
 * version is found out.  The tables of size classes must agree with each other.
 * Offsets: struct arena_s, tcache_slow_s, tcache_s, base_s of 5.3.0 and 5.2.1.
 */
#include <errno.h>
#include <string.h>
#include "leaks/jemalloc.h"
#include "leaks/scan.h"

#define MAX_KEYS 256 /* distinct root indexes that are tried */

static const struct je_layout layouts[] = {
    {
	.version = "5.3",
	.state_shift = 17,
	.state_bits = 3,
	.class_shift = 20,
	.nfree_shift = 28,
	.arena_internal = 56,
	.arena_large = 976,
	.arena_caches = 10392,
	.arena_base = 78936,
	.arena_bins = 78952,
	.bin_size = 224,
	.bin_curregs = 136,
	.base_blocks = 160,
	.base_allocated = 3880,
	.cache_next = 0,
	.cache_arena = 40,
    },
    {
	.version = "5.2",
	.state_shift = 16,
	.state_bits = 2,
	.class_shift = 18,
	.nfree_shift = 26,
	.arena_internal = 104,
	.arena_large = 768,
	.arena_caches = 10184,
	.arena_base = 29480,
	.arena_bins = 29192,
	.bins_apart = true,
	.bin_size = 280,
	.bin_curregs = 160,
	.base_blocks = 144,
	.base_allocated = 2008,
	.cache_next = 880,
	.cache_arena = 952,
    },
};

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

static bool extent_says(struct je *je, uint64_t edata, uint64_t page)
{
	struct je_edata e;

	return image_read_all(je->img, edata, &e, sizeof(e)) && (e.addr & ~(JE_PAGE - 1)) == page &&
	       e.size_esn >= JE_PAGE;
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

	/* The base, too, begins with the index. */
	return addr % 64 == 0 && scan_writable(je->img, addr) &&
	       image_word(je->img, addr + je->layout->arena_base, &base) &&
	       scan_writable(je->img, base) && image_read_all(je->img, base, &ind, sizeof(ind)) &&
	       ind == index && scan_writable(je->img, je_word(je, base + je->layout->base_blocks));
}

/* The table begins with arena 0, and every entry of it is empty or an arena of that index. */
static bool valid_arenas(struct je *je, const uint64_t *words)
{
	if (!words[0])
		return false;
	for (unsigned i = 0; i < JE_ARENAS; i++) {
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

static bool find_arenas(struct je *je, const struct scan_data *d)
{
	for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++) {
		je->layout = &layouts[k];
		for (size_t i = 0; in_data(d, i, JE_ARENAS * 8ul); i++) {
			je->arenas_at = d->start + i * 8;
			if (valid_arenas(je, d->words + i))
				return true;
		}
	}
	return false;
}

static int find_tables(const struct scan_data *d, void *arg)
{
	struct je *je = ((struct search *)arg)->je;
	bool bins = false, sizes = false;

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
	return sizes && find_arenas(je, d) ? 1 : -ENOTSUP;
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
