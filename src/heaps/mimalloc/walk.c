/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for mimalloc 2 (release builds, whose free lists are not encoded).
 *
 * Layout: types.h, segment.c of 2.0.9, 2.1.2, 2.1.7 and 2.2.  Memory is in segments of 32 MiB (or larger ones
 * for one huge block), aligned to their size, which contain the main heap's cookie xor their
 * address.  A segment is divided into pages of equal blocks.  A block is free if it is in one of
 * its page's three lists, or, freed by another thread, in the delayed frees of the page's heap.
 * The heap is exact only if every page's count of blocks in use, every heap's count of pages and
 * every thread's count of segments agree with what was found.
 *
 * In a page with over-aligned blocks, the address that the program got can be inside the block.  It
 * is not recorded anywhere, so the whole block is listed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/addr_list.h"
#include "heaps/chain.h"
#include "heaps/free_list.h"
#include "heaps/mimalloc/mimalloc.h"
#include "heaps/mimalloc/mimalloc_2.h"
#include "heaps/scan.h"
#include "heaps/walker.h"
#include "lib/human.h"

#define SEGMENT_HUGE 1
#define TLD_SEGMENTS 896 /* mi_tld_t.segments.count */

static struct mi2_heap *heap_at(struct mi2 *w, uint64_t addr)
{
	vec_for_each (&w->heaps, h) {
		if (h->addr == addr)
			return h;
	}
	return NULL;
}

static uint64_t word_at(struct mi2 *w, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(w->img, addr, &word) ? word : 0;
}

/* Adds blocks that other threads freed to @heap, and that it has not collected yet. */
static int take_delayed(struct mi2 *w, uint64_t heap)
{
	uint64_t at = word_at(w, heap + w->layout->heap_delayed);
	struct chain c = {0};

	while (at) {
		if (addr_list_push(&w->delayed, at))
			return -ENOMEM;
		if (!image_word(w->img, at, &at) || chain_cycles(&c, at)) {
			heap_damage(w->heap, heap, "list of delayed frees is broken");
			heap_doubt(w->heap, "a list of delayed frees is broken");
			break;
		}
	}
	return 0;
}

static int take_heap(struct mi2 *w, uint64_t addr)
{
	struct mi2_heap h = {.addr = addr,
			     .thread = word_at(w, addr + w->layout->heap_delayed + 8)};
	uint64_t tld = word_at(w, addr);

	h.pages = (int64_t)word_at(w, addr + w->layout->heap_pages);
	/* A thread can have several heaps; the first one found accounts for its segments. */
	h.segments = (int64_t)word_at(w, tld + TLD_SEGMENTS);
	vec_for_each (&w->heaps, it) {
		if (it->thread == h.thread)
			h.segments = 0;
	}
	return vec_push(&w->heaps, h) ? -ENOMEM : take_delayed(w, addr);
}

/* The next page in use of the current segment, from *@slice on.  Return: false: no more. */
static bool next_page(struct mi2 *w, uint64_t addr, uint64_t *slice, struct mi2_page *p)
{
	while (*slice < w->seg.entries) {
		mi2_parse(w, addr, *slice, p);
		if (!p->slices ||
		    (p->slices > w->seg.entries - *slice && w->seg.kind != SEGMENT_HUGE)) {
			heap_damage(w->heap, addr, "segment: slice %" PRIu64 " has a wrong length",
				    *slice);
			heap_doubt(w->heap, "the pages of a segment do not follow each other");
			return false;
		}
		*slice += p->slices;
		if (p->block_size)
			return true;
	}
	return false;
}

/* Lists all heaps that own pages.  This must be done before blocks are judged. */
static int take_heaps(struct mi2 *w)
{
	int ret = 0;

	for (size_t i = 0; i < w->segments.n; i++) {
		struct mi2_page p;
		uint64_t slice;

		if (!mi2_read(w, w->segments.at[i]))
			continue;
		slice = w->seg.info_slices;
		while (!ret && next_page(w, w->segments.at[i], &slice, &p)) {
			if (p.heap && !heap_at(w, p.heap))
				ret = take_heap(w, p.heap);
		}
		if (ret)
			return ret;
	}
	addr_list_sort(&w->delayed);
	return 0;
}

static int take_blocks(struct mi2 *w, const struct free_list_area *a)
{
	uint64_t at = a->base;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < a->capacity; i++, at += a->size) {
		bool delayed = addr_list_take(&w->delayed, at);

		if (delayed || a->is_free[i])
			w->heap->free_bytes += a->size;
		else
			ret = heap_add(w->heap, at, a->size);
	}
	return ret;
}

static void mark_lists(struct mi2 *w, const struct mi2_page *p, const struct free_list_area *a)
{
	struct mi_lists lists = {p->free, p->local_free, p->thread_free, p->used, p->capacity};

	mi_mark_lists(w->img, &w->view, w->heap, a, &lists);
}

static int take_page(struct mi2 *w, const struct mi2_page *p)
{
	uint64_t bytes = p->addr + p->bytes - p->start;
	struct free_list_area area = {p->start, p->block_size, p->capacity, NULL};
	struct mi2_heap *heap = p->heap ? heap_at(w, p->heap) : NULL;
	int ret;

	if (heap)
		heap->pages--;
	if (p->start < p->addr || p->start >= p->addr + p->bytes || area.size > bytes ||
	    area.size * p->capacity > bytes || p->slices > w->seg.slices) {
		heap_damage(w->heap, p->addr, "page: no room for %u block%s of %" PRIu64,
			    p->capacity, plural(p->capacity), area.size);
		heap_doubt(w->heap, "a page has more blocks than fit");
		return 0;
	}
	area.is_free = calloc(area.capacity + 1ul, 1);
	if (!area.is_free)
		return -ENOMEM;
	mark_lists(w, p, &area);
	ret = take_blocks(w, &area);
	free(area.is_free);
	return ret;
}

static int take_segment(struct mi2 *w, uint64_t addr)
{
	struct mi2_page p;
	uint64_t slice, n = 0;
	int ret;

	if (!mi2_read(w, addr)) {
		heap_damage(w->heap, addr, "segment cannot be read");
		heap_doubt(w->heap, "a segment cannot be read");
		return 0;
	}
	ret = heap_own(w->heap, addr, addr + w->seg.slices * MI2_SLICE,
		       w->seg.kind == SEGMENT_HUGE ? HEAP_MMAPPED : HEAP_ARENA);
	w->heap->metadata_bytes += w->seg.info_slices * MI2_SLICE;
	vec_for_each (&w->heaps, h) {
		if (h->thread == w->seg.thread && h->segments) {
			h->segments--;
			break;
		}
	}
	slice = w->seg.info_slices;
	while (!ret && next_page(w, addr, &slice, &p)) {
		n++;
		ret = take_page(w, &p);
	}
	if (!ret && n != w->seg.used)
		heap_doubt(w->heap,
			   "segment 0x%" PRIx64 ": %" PRIu64
			   " pages in use, its counter says %" PRIu64,
			   addr, n, w->seg.used);
	return ret;
}

static void check_sums(struct mi2 *w)
{
	size_t missed = w->delayed.list.n - w->delayed.matched;

	w->heap->checksum_known = true;
	w->heap->exact = !w->heap->doubt[0];
	vec_for_each (&w->heaps, h) {
		if (h->pages)
			heap_doubt(w->heap,
				   "heap 0x%" PRIx64 ": pages counted but not found: %" PRId64,
				   h->addr, h->pages);
		if (h->segments)
			heap_doubt(w->heap,
				   "thread 0x%" PRIx64 ": segments counted but not found: %" PRId64,
				   h->thread, h->segments);
	}
	if (w->unsure)
		heap_doubt(w->heap, "it has too few pages to tell which version it is");
	if (missed)
		heap_doubt(w->heap, "delayed frees that are not in any page: %zu", missed);
	scan_doubt_threads(w->img, "mimalloc", w->heap);
}

static int walk_segments(struct mi2 *w)
{
	int ret = take_heaps(w);

	w->heap->arenas = (uint32_t)w->heaps.n;
	for (size_t i = 0; !ret && i < w->segments.n; i++)
		ret = take_segment(w, w->segments.at[i]);
	return ret;
}

static int walk_2(struct image *img, struct heap *heap)
{
	struct mi2 *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->img = img;
	w->heap = heap;
	ret = mi2_find(w);
	if (!ret)
		ret = walk_segments(w);
	if (!ret) {
		check_sums(w);
		snprintf(heap->version, sizeof(heap->version), "%s", w->version);
	}
	vec_free(&w->segments);
	vec_free(&w->heaps);
	addr_list_free(&w->delayed);
	image_view_free(&w->view);
	free(w);
	return ret;
}

static int walk_mimalloc(struct image *img, struct heap *heap, struct mp_err *err)
{
	int ret = walk_2(img, heap);

	if (ret == -ENOENT)
		ret = mimalloc_3_walk(img, heap);
	if (ret == -ENOENT && !scan_has_library(img, "mimalloc"))
		return ret;
	heap->allocator = "mimalloc";
	if (ret == -ENOENT || ret == -ENOTSUP)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOTSUP,
			       "the process has mimalloc, but of a version whose layout memprof "
			       "does not know");
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	heap_finish(heap);
	return 0;
}

const struct walker walker_mimalloc = {
    .name = "mimalloc",
    .machines = "x86_64 aarch64",
    .library = "mimalloc",
    .walk = walk_mimalloc,
};
