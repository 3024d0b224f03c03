/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds jemalloc's data without symbols, in a module that has its messages.  The radix tree's root
 * is 2 MiB or 256 KiB of .bss.  It is recognized by an entry that leads to a leaf, which leads to
 * an extent that has the matching address.  The arenas are in a table, and their bases have their
 * index; this shows the version.  The tables of size classes must agree with each other.
 */
#include <errno.h>
#include <string.h>
#include "heaps/jemalloc/jemalloc.h"
#include "heaps/scan.h"

/* rtree_levels of rtree.h for LG_VADDR 48 and 57, and for 48 with pages of 64 KiB. */
static const struct je_tree trees[] = {
    {30, 0, 1ul << 18, 0, 1ul << 18, 1, 12},
    {42, 27, 1ul << 15, 1ul << 15, 1ul << 15, 2, 12},
    {32, 0, 1ul << 16, 0, 1ul << 16, 1, 16},
};
#define MIN_ROOT_BYTES (8ul << 15)

/* Bytes of a node or leaf directly below the root. */
static uint64_t child_bytes(const struct je_tree *t)
{
	return 8 * (t->node_shift ? t->node_words : t->leaf_elements * t->leaf_words);
}

/* Finds the first address that the leaf describes, from extents that match their position in it.
 * Return: false if it is not a leaf. */
static bool leaf_base(struct je *je, struct image_view *v, uint64_t leaf, uint64_t *base)
{
	const struct je_tree *t = je->tree;
	const uint64_t span = t->leaf_elements << t->page_shift,
		       end = leaf + t->leaf_elements * t->leaf_words * 8;
	uint64_t word;

	for (uint64_t at = leaf; (word = scan_nonzero(je->img, v, &at, end)); at += 8) {
		uint64_t i = (at - leaf) / 8, edata = je_leaf_edata(word, t);
		struct je_edata e;

		if (i % t->leaf_words || !edata)
			continue;
		if (!scan_writable(je->img, edata) ||
		    !image_read_all(je->img, edata, &e, sizeof(e)))
			return false;
		*base = je_pages(je, e.addr) - (i / t->leaf_words << t->page_shift);
		/* A leaf also has entries for the last page of an extent, and for the inner pages
		 * of a slab. */
		if (je_pages(je, e.size_esn) && *base % span == 0)
			return true;
	}
	return false;
}

/* As leaf_base(), for a node or leaf directly below the root. */
static bool child_base(struct je *je, struct image_view *v, uint64_t child, uint64_t *base)
{
	const struct je_tree *t = je->tree;
	uint64_t at = child, leaf;

	if (!t->node_shift)
		return leaf_base(je, v, child, base);
	leaf = scan_nonzero(je->img, v, &at, child + t->node_words * 8);
	if (!leaf || leaf % 64 || !scan_writable(je->img, leaf) || !leaf_base(je, v, leaf, base))
		return false;
	*base -= (at - child) / 8 << t->node_shift;
	return *base % (1ull << t->root_shift) == 0;
}

static bool may_be_child(const struct image *img, uint64_t at, const struct je_tree *t)
{
	return at % 64 == 0 && scan_all_writable(img, at, at + child_bytes(t));
}

/* A pointer to a leaf can also be elsewhere, but the root contains nothing but children. */
static bool only_children(const struct scan_data *data, uint64_t root, const struct je_tree *t)
{
	const uint64_t *words = data->words + (root - data->start) / 8;

	for (uint64_t i = 0; i < t->root_words; i++) {
		if (words[i] && !may_be_child(data->img, words[i], t))
			return false;
	}
	return true;
}

static bool find_root(struct je *je, struct image_view *v, const struct scan_data *data)
{
	const struct je_tree *t = je->tree;
	uint64_t base = 0;

	for (size_t i = 0; data->n >= t->root_words && i < data->n; i++) {
		uint64_t child = data->words[i], key;

		if (!child || !may_be_child(data->img, child, t) ||
		    !child_base(je, v, child, &base))
			continue;
		key = base >> t->root_shift;
		if (key > i || i - key + t->root_words > data->n)
			continue;
		je->root = data->start + (i - key) * 8;
		if (only_children(data, je->root, t))
			return true;
	}
	je->root = 0;
	return false;
}

static int find_tree(const struct scan_data *data, void *arg)
{
	struct image_view view = {0};
	struct je *je = arg;
	bool found = false;

	for (size_t k = 0; k < sizeof(trees) / sizeof(trees[0]) && !found; k++) {
		je->tree = &trees[k];
		found = find_root(je, &view, data);
	}
	image_view_free(&view);
	return found;
}

static bool valid_arena(struct je *je, uint64_t addr, unsigned index)
{
	uint32_t ind;
	uint64_t base;

	/* The base, too, begins with the arena's index. */
	return addr % 64 == 0 && scan_writable(je->img, addr) &&
	       image_word(je->img, addr + je->layout->arena_base, &base) &&
	       scan_writable(je->img, base) && image_read_all(je->img, base, &ind, sizeof(ind)) &&
	       ind == index && scan_writable(je->img, je_word(je, base + je->layout->base_blocks));
}

/* The table begins with arena 0, and each entry is empty or an arena with the matching index. */
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

static bool valid_bins(const struct je *je)
{
	for (unsigned i = 0; i < je->layout->bins; i++) {
		const struct je_bin *b = &je->bin[i];

		if (!b->reg_size || !b->slab_size || b->slab_size % je_page(je) ||
		    b->nregs > JE_MAX_REGIONS || b->nregs != b->slab_size / b->reg_size ||
		    b->n_shards > 64 || b->bits != b->nregs ||
		    (i && b->reg_size <= je->bin[i - 1].reg_size))
			return false;
	}
	return true;
}

/* The sizes of all classes: small ones are as in the bins, and the sizes ascend. */
static bool valid_sizes(const struct je *je, const uint64_t *words)
{
	unsigned bins = je->layout->bins;

	for (unsigned i = 0; i < bins; i++) {
		if (words[i] != je->bin[i].reg_size)
			return false;
	}
	for (unsigned i = bins; i < JE_CLASSES; i++) {
		if (words[i] <= words[i - 1] || words[i] % je_page(je))
			return false;
	}
	return true;
}

static bool in_data(const struct scan_data *d, size_t i, size_t bytes)
{
	return i + bytes / 8 <= d->n;
}

static bool find_bins(struct je *je, const struct scan_data *d)
{
	const size_t stride = je->layout->bin_info_size / 8;

	for (size_t i = 0; in_data(d, i, je->layout->bins * stride * 8); i++) {
		for (unsigned k = 0; k < je->layout->bins; k++)
			memcpy(&je->bin[k], d->words + i + k * stride, sizeof(je->bin[k]));
		if (valid_bins(je))
			return true;
	}
	return false;
}

static bool find_sizes(struct je *je, const struct scan_data *d)
{
	for (size_t i = 0; in_data(d, i, sizeof(je->class_size)); i++) {
		if (valid_sizes(je, d->words + i)) {
			memcpy(je->class_size, d->words + i, sizeof(je->class_size));
			return true;
		}
	}
	return false;
}

static bool find_arenas(struct je *je, const struct scan_data *d)
{
	for (size_t i = 0; in_data(d, i, JE_ARENAS * 8ul); i++) {
		je->arenas_at = d->start + i * 8;
		if (valid_arenas(je, d->words + i))
			return true;
	}
	return false;
}

static int find_tables(const struct scan_data *d, void *arg)
{
	struct je *je = arg;

	if (je->root < d->start || je->root >= d->start + d->n * 8)
		return 0;
	for (size_t k = 0; k < je_layout_count; k++) {
		je->layout = &je_layouts[k];
		if (je->layout->page_shift != je->tree->page_shift || !find_arenas(je, d))
			continue;
		if (je->layout->const_tables)
			je_make_tables(je);
		else if (!find_bins(je, d) || !find_sizes(je, d))
			continue;
		return 1;
	}
	return -ENOTSUP;
}

int je_find(struct je *je)
{
	int ret;

	ret = scan_modules_with(je->img, "<jemalloc>", MIN_ROOT_BYTES, find_tree, je);
	if (ret == 1)
		ret = scan_modules(je->img, find_tables, je);
	else if (!ret)
		ret = scan_has_library(je->img, "jemalloc") ? -ENOTSUP : -ENOENT;
	return ret > 0 ? 0 : ret;
}
