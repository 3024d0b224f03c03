/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for mimalloc 2.0 (release builds, whose free lists are not encoded).
 *
 * Layout: mimalloc-types.h, segment.c of 2.0.9.  Memory is in segments of 32 MiB (or larger ones
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
#include "heaps/scan.h"
#include "heaps/walker.h"
#include "lib/human.h"

#define SEGMENT_SIZE (32ull << 20)
#define SLICE_SIZE   (64ull << 10)
#define MAX_SLICES   513
#define HUGE_BLOCK   (2ull << 30) /* from this size on, the size of the page is used */
#define SMALL_SHIFT  384	  /* pages of blocks up to 1 KiB begin this much later */
#define SMALL_MAX    1024
#define SEGMENT_HUGE 1
#define TLD_BACKING  16	 /* mi_tld_t.heap_backing */
#define TLD_SEGMENTS 896 /* mi_tld_t.segments.count */
#define HEAP_DELAYED 2840
#define HEAP_THREAD  2848
#define HEAP_COOKIE  2864
#define HEAP_PAGES   3024
#define THREAD_FLAGS 3ull /* low bits of page.thread_free */

/* mi_page_t, which also describes free runs of slices (block_size 0). */
struct mi_page {
	uint32_t slices, slice_offset;
	uint8_t flags0, pad;
	uint16_t capacity, reserved;
	uint8_t flags, retire;
	uint64_t free;
	uint32_t used, block_size;
	uint64_t local_free, thread_free, heap, next, prev, padding;
};
_Static_assert(sizeof(struct mi_page) == 80, "as in mimalloc 2.0");

struct mi_segment {
	uint64_t before[26]; /* memory id, commit masks, links */
	uint64_t used, cookie, slices, info_slices;
	uint32_t kind, pad;
	uint64_t entries, thread;
	struct mi_page page[MAX_SLICES];
};
_Static_assert(sizeof(struct mi_segment) == 41304, "as in mimalloc 2.0");

/* A heap and its counters; the walk subtracts what it finds. */
struct mi_heap {
	uint64_t addr, thread;
	int64_t pages, segments;
};

struct mi_walk {
	struct image *img;
	struct heap *heap;
	uint64_t cookie;
	VEC(uint64_t) segments; /* by address */
	VEC(struct mi_heap) heaps;
	struct addr_list delayed;
	struct image_view view;
	struct mi_segment seg; /* the current one */
};

/* The main heap's thread data are static, too, and point back to it. */
static int find_main_heap(const struct scan_data *d, void *arg)
{
	struct mi_walk *w = arg;

	for (size_t i = 0; i + HEAP_PAGES / 8 < d->n; i++) {
		uint64_t at = d->start + i * 8, tld = d->words[i];

		if (tld < d->start || tld % 8 || (tld - d->start + TLD_BACKING) / 8 >= d->n ||
		    d->words[(tld - d->start + TLD_BACKING) / 8] != at)
			continue;
		w->cookie = d->words[i + HEAP_COOKIE / 8];
		if (w->cookie)
			return 1;
	}
	return 0;
}

static bool valid_segment(const struct mi_walk *w, uint64_t addr, const struct mi_segment *s)
{
	return scan_all_writable(w->img, addr, addr + s->slices * SLICE_SIZE) &&
	       (s->cookie ^ addr) == w->cookie && s->used && s->entries <= MAX_SLICES &&
	       s->info_slices && s->info_slices < s->entries && s->slices >= s->entries - 1;
}

static int find_segments(struct mi_walk *w)
{
	vec_for_each (&w->img->maps, m) {
		uint64_t at = (m->start + SEGMENT_SIZE - 1) & -SEGMENT_SIZE;

		for (; m->write && !m->shared && at < m->end; at += SEGMENT_SIZE) {
			size_t head = offsetof(struct mi_segment, page);
			uint64_t touched = at;

			if (!image_present(w->img, m, &touched))
				break;
			at = touched & -SEGMENT_SIZE;
			if (!image_read_all(w->img, at, &w->seg, head) ||
			    !valid_segment(w, at, &w->seg))
				continue;
			if (vec_push(&w->segments, at))
				return -ENOMEM;
		}
	}
	return 0;
}

static struct mi_heap *heap_at(struct mi_walk *w, uint64_t addr)
{
	vec_for_each (&w->heaps, h) {
		if (h->addr == addr)
			return h;
	}
	return NULL;
}

static uint64_t word_at(struct mi_walk *w, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(w->img, addr, &word) ? word : 0;
}

/* Adds blocks that other threads freed to @heap, and that it has not collected yet. */
static int take_delayed(struct mi_walk *w, uint64_t heap)
{
	uint64_t at = word_at(w, heap + HEAP_DELAYED);
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

static int take_heap(struct mi_walk *w, uint64_t addr)
{
	struct mi_heap h = {.addr = addr, .thread = word_at(w, addr + HEAP_THREAD)};
	uint64_t tld = word_at(w, addr);

	h.pages = (int64_t)word_at(w, addr + HEAP_PAGES);
	/* A thread can have several heaps; the first one found accounts for its segments. */
	h.segments = (int64_t)word_at(w, tld + TLD_SEGMENTS);
	vec_for_each (&w->heaps, it) {
		if (it->thread == h.thread)
			h.segments = 0;
	}
	return vec_push(&w->heaps, h) ? -ENOMEM : take_delayed(w, addr);
}

/* The next page in use of the current segment, from *@slice on, or NULL. */
static const struct mi_page *next_page(struct mi_walk *w, uint64_t addr, uint64_t *slice)
{
	while (*slice < w->seg.entries) {
		const struct mi_page *p = &w->seg.page[*slice];

		if (!p->slices ||
		    (p->slices > w->seg.entries - *slice && w->seg.kind != SEGMENT_HUGE)) {
			heap_damage(w->heap, addr, "segment: slice %" PRIu64 " has a wrong length",
				    *slice);
			heap_doubt(w->heap, "the pages of a segment do not follow each other");
			return NULL;
		}
		*slice += p->slices;
		if (p->block_size)
			return p;
	}
	return NULL;
}

static bool read_segment(struct mi_walk *w, uint64_t addr)
{
	return image_read_all(w->img, addr, &w->seg, sizeof(w->seg));
}

/* Lists all heaps that own pages.  This must be done before blocks are judged. */
static int take_heaps(struct mi_walk *w)
{
	int ret = 0;

	for (size_t i = 0; i < w->segments.n; i++) {
		const struct mi_page *p;
		uint64_t slice;

		if (!read_segment(w, w->segments.at[i]))
			continue;
		slice = w->seg.info_slices;
		while (!ret && (p = next_page(w, w->segments.at[i], &slice))) {
			if (p->heap && !heap_at(w, p->heap))
				ret = take_heap(w, p->heap);
		}
		if (ret)
			return ret;
	}
	addr_list_sort(&w->delayed);
	return 0;
}

static int take_blocks(struct mi_walk *w, const struct free_list_area *a)
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

static void mark_lists(struct mi_walk *w, const struct mi_page *p, const struct free_list_area *a)
{
	struct mi_lists lists = {p->free, p->local_free, p->thread_free & ~THREAD_FLAGS, p->used,
				 p->capacity};

	mi_mark_lists(w->img, &w->view, w->heap, a, &lists);
}

static int take_page(struct mi_walk *w, const struct mi_page *p, uint64_t addr)
{
	uint64_t shift = p->block_size >= 8 && p->block_size <= SMALL_MAX ? SMALL_SHIFT : 0;
	uint64_t bytes = p->slices * SLICE_SIZE - shift;
	struct free_list_area area = {.base = addr + shift, .capacity = p->capacity};
	struct mi_heap *heap = p->heap ? heap_at(w, p->heap) : NULL;
	int ret;

	if (heap)
		heap->pages--;
	area.size = p->block_size < HUGE_BLOCK ? p->block_size : bytes;
	if (!area.size || area.size * p->capacity > bytes || p->slices > w->seg.slices) {
		heap_damage(w->heap, addr, "page: no room for %u block%s of %" PRIu64, p->capacity,
			    plural(p->capacity), area.size);
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

static int take_segment(struct mi_walk *w, uint64_t addr)
{
	const struct mi_page *p;
	uint64_t slice, n = 0;
	int ret;

	if (!read_segment(w, addr)) {
		heap_damage(w->heap, addr, "segment cannot be read");
		heap_doubt(w->heap, "a segment cannot be read");
		return 0;
	}
	ret = heap_own(w->heap, addr, addr + w->seg.slices * SLICE_SIZE,
		       w->seg.kind == SEGMENT_HUGE ? HEAP_MMAPPED : HEAP_ARENA);
	w->heap->metadata_bytes += w->seg.info_slices * SLICE_SIZE;
	vec_for_each (&w->heaps, h) {
		if (h->thread == w->seg.thread && h->segments) {
			h->segments--;
			break;
		}
	}
	slice = w->seg.info_slices;
	while (!ret && (p = next_page(w, addr, &slice))) {
		n++;
		ret = take_page(w, p, addr + (uint64_t)(p - w->seg.page) * SLICE_SIZE);
	}
	if (!ret && n != w->seg.used)
		heap_doubt(w->heap,
			   "segment 0x%" PRIx64 ": %" PRIu64
			   " pages in use, its counter says %" PRIu64,
			   addr, n, w->seg.used);
	return ret;
}

static void check_sums(struct mi_walk *w)
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
	if (missed)
		heap_doubt(w->heap, "delayed frees that are not in any page: %zu", missed);
	scan_doubt_threads(w->img, "mimalloc", w->heap);
}

static int find(struct mi_walk *w)
{
	int ret = scan_modules(w->img, find_main_heap, w);

	if (ret > 0)
		ret = find_segments(w);
	return ret || w->segments.n ? ret : -ENOENT;
}

static int walk_segments(struct mi_walk *w)
{
	int ret = take_heaps(w);

	w->heap->arenas = (uint32_t)w->heaps.n;
	for (size_t i = 0; !ret && i < w->segments.n; i++)
		ret = take_segment(w, w->segments.at[i]);
	return ret;
}

static int walk_2(struct image *img, struct heap *heap)
{
	struct mi_walk *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->img = img;
	w->heap = heap;
	ret = find(w);
	if (!ret)
		ret = walk_segments(w);
	if (!ret) {
		check_sums(w);
		snprintf(heap->version, sizeof(heap->version), "2.0");
	}
	vec_free(&w->segments);
	vec_free(&w->heaps);
	addr_list_free(&w->delayed);
	image_view_free(&w->view);
	free(w);
	return ret;
}

static int walk(struct image *img, struct heap *heap, struct mp_err *err)
{
	int ret = walk_2(img, heap);

	if (ret == -ENOENT)
		ret = mimalloc_3_walk(img, heap);
	if (ret == -ENOENT && !scan_has_library(img, "mimalloc"))
		return ret;
	heap->allocator = "mimalloc";
	if (ret == -ENOENT)
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
    .machines = "x86_64",
    .library = "mimalloc",
    .walk = walk,
};
