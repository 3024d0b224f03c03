/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for jemalloc 5.1 to 5.3 (48 or 57-bit addresses; pages of 4 KiB, or of 64 KiB as for
 * aarch64; 2 MiB huge pages).
 *
 * Layout: edata.h, rtree.h, arena.h, cache_bin.h, tcache_structs.h of 5.3.0 and 5.3.1,
 * extent_structs.h of 5.2.1 and 5.1.0.  A radix tree in .bss maps each page to its extent (edata_t): one large block, or a slab
 * of equal regions with a bitmap of the free ones.  Regions in a thread's cache count as allocated
 * there; all caches of an arena are in a ring that begins in the arena.  The arenas count regions
 * and large blocks.  The heap is exact only if every one of these counters agrees, and all caches
 * hold live regions only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "heaps/jemalloc/jemalloc.h"
#include "heaps/scan.h"
#include "heaps/walker.h"
#include "lib/human.h"

static void je_free(struct je *je)
{
	vec_free(&je->arenas);
	addr_list_free(&je->cached);
	addr_list_free(&je->internal);
	free(je->leaf);
}

static struct je_arena *arena_by_index(struct je *je, unsigned index)
{
	vec_for_each (&je->arenas, a) {
		if (a->index == index)
			return a;
	}
	return NULL;
}

static int take_block(struct je *je, struct je_arena *arena, uint64_t addr, uint64_t size)
{
	if (addr_list_take(&je->cached, addr)) {
		je->heap->cached_bytes += size;
		return 0;
	}
	if (addr_list_take(&je->internal, addr)) {
		je->heap->metadata_bytes += size;
		arena->internal -= (int64_t)size;
		return 0;
	}
	return heap_add(je->heap, addr, size);
}

static int take_slab(struct je *je, struct je_arena *arena, uint64_t edata,
		     const struct je_edata *e)
{
	const struct je_bin *bin = &je->bin[je_szind(je->layout, e)];
	uint64_t addr = e->addr, bitmap[JE_MAX_REGIONS / 64];
	uint32_t n_free = 0;
	int ret = 0;

	if (je_pages(je, e->size_esn) != bin->slab_size ||
	    !image_read_all(je->img, edata + sizeof(*e), bitmap, (bin->nregs + 63) / 64 * 8)) {
		heap_damage(je->heap, e->addr, "slab does not have the size of its class");
		heap_doubt(je->heap, "a slab does not have the size of its class");
		return 0;
	}
	for (uint32_t i = 0; !ret && i < bin->nregs; i++, addr += bin->reg_size) {
		if (bitmap[i / 64] >> i % 64 & 1)
			n_free++;
		else
			ret = take_block(je, arena, addr, bin->reg_size);
	}
	if (n_free != je_nfree(je->layout, e)) {
		heap_damage(je->heap, e->addr, "slab: %u region%s free, its counter says %u",
			    n_free, plural(n_free), je_nfree(je->layout, e));
		heap_doubt(je->heap, "the bitmap and the counter of a slab disagree");
	}
	je->heap->free_bytes += n_free * bin->reg_size;
	arena->regions[je_szind(je->layout, e)] -= bin->nregs - n_free;
	return ret;
}

static int take_active(struct je *je, uint64_t edata, const struct je_edata *e)
{
	unsigned class = je_szind(je->layout, e), bins = je->layout->bins;
	struct je_arena *arena = arena_by_index(je, je_arena_ind(e));
	uint64_t size;

	if (class >= JE_CLASSES)
		return 0;
	size = je->class_size[class];
	if (!arena) {
		heap_doubt(je->heap, "an extent belongs to arena %u, which was not found",
			   je_arena_ind(e));
		return 0;
	}
	if (je_is_slab(e) && class < bins)
		return take_slab(je, arena, edata, e);
	if (je->layout->plain_large && class >= bins)
		size = je_pages(je, e->size_esn) - je->padding;
	if (je_is_slab(e) || size > je_pages(je, e->size_esn) || size > je->class_size[class]) {
		heap_damage(je->heap, e->addr, "extent is too small for its class");
		heap_doubt(je->heap, "an extent is too small for its class");
		return 0;
	}
	if (class >= bins)
		arena->large[class - bins]--;
	return take_block(je, arena, e->addr, size);
}

/* Does the extent's last page lead to it as well, are its pages mapped, and do they not overlap the
 * extent before? */
static bool plausible(struct je *je, size_t index, uint64_t page, uint64_t size)
{
	const struct je_tree *t = je->tree;
	uint64_t last = index + (size >> t->page_shift) - 1;

	if (last < t->leaf_elements && je_leaf_edata(je->leaf[last * t->leaf_words], t) !=
					   je_leaf_edata(je->leaf[index * t->leaf_words], t))
		return false;
	return page >= je->end && page + size > page &&
	       scan_all_writable(je->img, page, page + size);
}

static int take_extent(struct je *je, size_t index, uint64_t page)
{
	uint64_t edata = je_leaf_edata(je->leaf[index * je->tree->leaf_words], je->tree);
	struct je_edata e;
	uint64_t size;
	int ret;

	if (!image_read_all(je->img, edata, &e, sizeof(e))) {
		heap_damage(je->heap, edata, "extent at 0x%" PRIx64 " has no descriptor", page);
		heap_doubt(je->heap, "an extent's descriptor cannot be read");
		return 0;
	}
	size = je_pages(je, e.size_esn);
	/* A slab is in the tree with all its pages, other extents with the first and the last one.
	 */
	if (je_pages(je, e.addr) != page || !size)
		return 0;
	if (!plausible(je, index, page, size)) {
		heap_damage(je->heap, edata, "extent at 0x%" PRIx64 " has a wrong size", page);
		heap_doubt(je->heap, "an extent has a wrong size");
		return 0;
	}
	je->end = page + size;
	ret = heap_own(je->heap, page, page + size, HEAP_ARENA);
	if (ret)
		return ret;
	switch (je_state(je->layout, &e)) {
	case JE_ACTIVE:
		return take_active(je, edata, &e);
	case JE_DIRTY:
	case JE_MUZZY:
		je->heap->free_bytes += size;
		return 0;
	default:
		return 0;
	}
}

/* Where large blocks begin at any cache line of their first page, the last page is padding. */
static void find_padding(struct je *je)
{
	const struct je_tree *t = je->tree;

	for (size_t i = 0; !je->padding && i < t->leaf_elements; i++) {
		uint64_t edata = je_leaf_edata(je->leaf[i * t->leaf_words], t);
		struct je_edata e;

		if (edata && image_read_all(je->img, edata, &e, sizeof(e)) && !je_is_slab(&e) &&
		    je_state(je->layout, &e) == JE_ACTIVE && e.addr % je_page(je))
			je->padding = je_page(je);
	}
}

static int take_leaf(struct je *je, uint64_t leaf, uint64_t base)
{
	const struct je_tree *t = je->tree;
	int ret = 0;

	if (!image_read_all(je->img, leaf, je->leaf, t->leaf_elements * t->leaf_words * 8)) {
		heap_damage(je->heap, leaf, "part of the radix tree cannot be read");
		heap_doubt(je->heap, "part of the radix tree cannot be read");
		return 0;
	}
	if (je->layout->plain_large && !je->padding)
		find_padding(je);
	for (size_t i = 0; !ret && i < t->leaf_elements; i++) {
		if (je_leaf_edata(je->leaf[i * t->leaf_words], t))
			ret = take_extent(je, i, base + (i << t->page_shift));
	}
	return ret;
}

/* @node: @words pointers, each for 2^@shift bytes, beginning at @base. */
static int take_node(struct je *je, uint64_t node, uint64_t words, unsigned shift, uint64_t base)
{
	uint64_t part[512];
	int ret = 0;

	for (uint64_t key = 0; key < words; key += 512) {
		if (!image_read_all(je->img, node + key * 8, part, sizeof(part)))
			return 0;
		for (int i = 0; !ret && i < 512; i++) {
			uint64_t from = base + ((key + i) << shift);

			if (!part[i])
				continue;
			if (shift == je->tree->root_shift && je->tree->node_shift)
				ret = take_node(je, part[i], je->tree->node_words,
						je->tree->node_shift, from);
			else
				ret = take_leaf(je, part[i], from);
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* Reports what is left of the arena's counters after the walk. */
static void check_arena(struct je *je, const struct je_arena *a)
{
	for (unsigned i = 0; i < je->layout->bins; i++) {
		if (a->regions[i])
			heap_doubt(je->heap,
				   "arena %u: blocks of %" PRIu64
				   " bytes counted but not found: %" PRId64,
				   a->index, je->bin[i].reg_size, a->regions[i]);
	}
	for (unsigned i = 0; i < JE_CLASSES - je->layout->bins; i++) {
		if (a->large[i])
			heap_doubt(je->heap,
				   "arena %u: blocks of %" PRIu64
				   " bytes counted but not found: %" PRId64,
				   a->index, je->class_size[je->layout->bins + i], a->large[i]);
	}
	if (a->internal)
		heap_doubt(je->heap, "arena %u: %" PRId64 " bytes of jemalloc's own not found",
			   a->index, a->internal);
}

static void check_sums(struct je *je)
{
	size_t missed = je->cached.list.n - je->cached.matched;

	je->heap->checksum_known = true;
	je->heap->exact = !je->heap->doubt[0];
	vec_for_each (&je->arenas, a)
		check_arena(je, a);
	if (missed)
		heap_doubt(je->heap, "blocks in caches that are not live in any extent: %zu",
			   missed);
	scan_doubt_threads(je->img, "jemalloc", je->heap);
}

static int walk_extents(struct je *je)
{
	je->leaf = malloc(je->tree->leaf_elements * je->tree->leaf_words * 8);
	if (!je->leaf)
		return -ENOMEM;
	addr_list_sort(&je->cached);
	addr_list_sort(&je->internal);
	return take_node(je, je->root, je->tree->root_words, je->tree->root_shift, 0);
}

static int walk_jemalloc(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct je je = {.img = img, .heap = heap};
	int ret = je_find(&je);

	if (ret == -ENOENT)
		return ret;
	heap->allocator = "jemalloc";
	if (!ret)
		ret = je_take_arenas(&je);
	if (!ret)
		ret = walk_extents(&je);
	if (!ret)
		check_sums(&je);
	je_free(&je);
	if (ret)
		heap_free(heap);
	/* Data of another program can look like a tree's root by chance. */
	if (ret == -ENOTSUP && !scan_has_library(img, "jemalloc"))
		return -ENOENT;
	if (ret == -ENOTSUP)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "the process has jemalloc, but of a version whose layout memprof "
			       "does not know");
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	snprintf(heap->version, sizeof(heap->version), "%s", je.layout->version);
	heap_finish(heap);
	return 0;
}

const struct walker walker_jemalloc = {
    .name = "jemalloc",
    .machines = "x86_64 aarch64",
    .library = "jemalloc",
    .walk = walk_jemalloc,
};
