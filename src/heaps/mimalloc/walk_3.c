/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for mimalloc 3.0 (release builds, whose free lists are not encoded).
 *
 * Layout: include/mimalloc/types.h and internal.h of 3.0, checked with Debian's 3.0.1.  A map of
 * two levels, to which a static variable points, leads from each slice of 64 KiB to its page:
 * blocks of one size after a header.  A block is free if it is in one of its page's three lists.
 * The heap is exact only if every page's count of blocks in use and every heap's count of pages
 * agree with what was found.  Pages of exited threads have no heap.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/free_list.h"
#include "heaps/mimalloc/mimalloc.h"
#include "heaps/scan.h"

#define SLICE_SHIFT 16
#define SUB_SHIFT   29		  /* log2 of the bytes covered by a part of the map */
#define SUB_WORDS   8192	  /* slices in a part */
#define MAP_WORDS   (1u << 18)	  /* parts, for 47-bit addresses */
#define MAX_KEYS    256		  /* parts that are tried, to find the map */
#define OWNED	    1ull	  /* low bit of thread_free */
#define HEAP_PAGES  160		  /* mi_heap_t.page_count */
#define HIGH_HEADER (16ull << 20) /* most bytes from a page's header to its blocks */

enum { MEM_NONE, MEM_ARENA = 7, MEM_LAST = 8 };

/* mi_page_t */
struct mi3_page {
	uint64_t thread, free;
	uint16_t used, capacity, reserved;
	uint8_t size_shift, retire;
	uint64_t local_free, thread_free, block_size, start;
	uint8_t tag, is_zero, pad[6];
	uint64_t heap, next, prev, committed;
	uint64_t arena; /* memid */
	uint32_t slice, slices;
	uint8_t kind, flags[7];
};
_Static_assert(sizeof(struct mi3_page) == 120, "as in mimalloc 3.0");

/* mi_arena_t */
struct arena {
	uint64_t memid[3], subproc, slices, info_slices;
};

struct mi3_heap {
	uint64_t addr;
	int64_t pages; /* its counter; the walk subtracts what it finds */
};

struct mi3_walk {
	struct image *img;
	struct heap *heap;
	struct image_view view;
	uint64_t map, end; /* of the last page */
	uint64_t key[MAX_KEYS];
	size_t n_keys;
	VEC(struct mi3_heap) heaps;
	VEC(uint64_t) arenas;
	uint64_t sub[SUB_WORDS];
};

static uint64_t word_at(struct mi3_walk *w, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(w->img, addr, &word) ? word : 0;
}

static uint64_t end_of(const struct mi3_page *p)
{
	return p->start + p->block_size * p->reserved;
}

static bool valid_page(struct mi3_walk *w, uint64_t at, const struct mi3_page *p)
{
	if (!p->block_size || p->block_size % 8 || !p->reserved || p->capacity > p->reserved ||
	    p->used > p->capacity || p->start < at + sizeof(*p) || p->start > at + HIGH_HEADER ||
	    p->block_size > UINT64_MAX / 2 / p->reserved || p->kind == MEM_NONE ||
	    p->kind > MEM_LAST || !scan_all_writable(w->img, at, end_of(p)))
		return false;
	return p->kind != MEM_ARENA || at == p->arena + ((uint64_t)p->slice << SLICE_SHIFT);
}

static uint64_t slice_address(uint64_t key, size_t i)
{
	return key << SUB_SHIFT | (uint64_t)i << SLICE_SHIFT;
}

static bool read_sub(struct mi3_walk *w, uint64_t map, uint64_t key)
{
	uint64_t sub = word_at(w, map + key * 8);

	return sub % 8 == 0 && scan_writable(w->img, sub) &&
	       image_read_all(w->img, sub, w->sub, sizeof(w->sub));
}

/* Does the part of @map for @key lead to pages at the matching addresses?  Some can have been
 * freed, and their memory reused. */
static bool valid_part(struct mi3_walk *w, uint64_t map, uint64_t key)
{
	size_t valid = 0, odd = 0;
	struct mi3_page p;

	if (!read_sub(w, map, key))
		return false;
	for (size_t i = 0; i < SUB_WORDS; i++) {
		uint64_t at = slice_address(key, i);

		if (!w->sub[i] || w->sub[i] != at)
			continue;
		if (image_read_all(w->img, at, &p, sizeof(p)) && valid_page(w, at, &p))
			valid++;
		else
			odd++;
	}
	return valid > odd;
}

static int find_map(const struct scan_data *d, void *arg)
{
	struct mi3_walk *w = arg;

	for (size_t i = 0; i < d->n; i++) {
		uint64_t map = d->words[i];

		if (!map || map % 4096 || !scan_writable(d->img, map))
			continue;
		for (size_t k = 0; k < w->n_keys; k++) {
			if (!valid_part(w, map, w->key[k]))
				continue;
			w->map = map;
			return 1;
		}
	}
	return 0;
}

static void collect_keys(struct mi3_walk *w)
{
	vec_for_each (&w->img->maps, m) {
		uint64_t last = (m->end - 1) >> SUB_SHIFT;

		for (uint64_t k = m->start >> SUB_SHIFT; k <= last && w->n_keys < MAX_KEYS; k++) {
			if (m->write && !m->shared && k < MAP_WORDS &&
			    (!w->n_keys || w->key[w->n_keys - 1] != k))
				w->key[w->n_keys++] = k;
		}
	}
}

static int count_page(struct mi3_walk *w, uint64_t heap)
{
	struct mi3_heap h = {heap, (int64_t)word_at(w, heap + HEAP_PAGES) - 1};

	vec_for_each (&w->heaps, it) {
		if (it->addr == heap) {
			it->pages--;
			return 0;
		}
	}
	return heap ? vec_push(&w->heaps, h) : 0;
}

/* Marks the whole arena as mimalloc's, including its tables, the threads' heaps, and free slices.
 */
static int own_arena(struct mi3_walk *w, uint64_t at)
{
	struct arena a;
	uint64_t end;

	vec_for_each (&w->arenas, it) {
		if (*it == at)
			return 0;
	}
	if (vec_push(&w->arenas, at))
		return -ENOMEM;
	if (!image_read_all(w->img, at, &a, sizeof(a)) || a.info_slices > a.slices)
		return 0;
	end = at + (a.slices << SLICE_SHIFT);
	w->heap->metadata_bytes += a.info_slices << SLICE_SHIFT;
	return end > at && scan_all_writable(w->img, at, end)
		   ? heap_own(w->heap, at, end, HEAP_ARENA)
		   : 0;
}

static int take_blocks(struct mi3_walk *w, const struct free_list_area *a)
{
	uint64_t at = a->base;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < a->capacity; i++, at += a->size) {
		if (a->is_free[i])
			w->heap->free_bytes += a->size;
		else
			ret = heap_add(w->heap, at, a->size);
	}
	return ret;
}

static void mark_lists(struct mi3_walk *w, const struct mi3_page *p, const struct free_list_area *a)
{
	struct mi_lists lists = {p->free, p->local_free, p->thread_free & ~OWNED, p->used,
				 p->capacity};

	mi_mark_lists(w->img, &w->view, w->heap, a, &lists);
}

/* The map still has pages that were freed as a whole.  Their memory can have been unmapped, purged or
 * reused since, so nothing but the header's own fields says anything about them. */
static bool is_gone(const struct mi3_page *p)
{
	return !p->heap && !p->used && (p->block_size || !p->start);
}

static int own_page(struct mi3_walk *w, uint64_t at, const struct mi3_page *p)
{
	w->end = end_of(p);
	w->heap->metadata_bytes += p->start - at;
	if (count_page(w, p->heap) || (p->kind == MEM_ARENA && own_arena(w, p->arena)))
		return -ENOMEM;
	return heap_own(w->heap, at, w->end, p->kind == MEM_ARENA ? HEAP_ARENA : HEAP_MMAPPED);
}

static int take_page(struct mi3_walk *w, uint64_t at)
{
	struct free_list_area area;
	struct mi3_page p = {0};
	bool is_read;
	int ret;

	/* An outdated entry inside a longer page. */
	if (at < w->end)
		return 0;
	is_read = image_read_all(w->img, at, &p, sizeof(p));
	if (is_read && is_gone(&p))
		return 0;
	if (!is_read || !valid_page(w, at, &p)) {
		heap_damage(w->heap, at, "page's header is damaged");
		heap_doubt(w->heap, "the header of the page at 0x%" PRIx64 " is damaged", at);
		return 0;
	}
	if (!p.capacity)
		return 0;
	area = (struct free_list_area){p.start, p.block_size, p.capacity, NULL};
	area.is_free = calloc(area.capacity, 1);
	if (!area.is_free)
		return -ENOMEM;
	mark_lists(w, &p, &area);
	ret = own_page(w, at, &p);
	if (!ret)
		ret = take_blocks(w, &area);
	free(area.is_free);
	return ret;
}

static int take_part(struct mi3_walk *w, uint64_t key)
{
	int ret = 0;

	if (!read_sub(w, w->map, key)) {
		heap_damage(w->heap, w->map + key * 8, "part of the page map cannot be read");
		heap_doubt(w->heap, "part of the page map cannot be read");
		return 0;
	}
	for (size_t i = 0; !ret && i < SUB_WORDS; i++) {
		if (w->sub[i] && w->sub[i] == slice_address(key, i))
			ret = take_page(w, w->sub[i]);
	}
	return ret;
}

static int take_pages(struct mi3_walk *w)
{
	uint64_t part[512];
	int ret = 0;

	for (uint64_t key = 0; key < MAP_WORDS; key += 512) {
		if (!image_read_all(w->img, w->map + key * 8, part, sizeof(part)))
			continue;
		/* The first part is for the page that contains the null pointer. */
		for (int i = !key; !ret && i < 512; i++) {
			if (part[i])
				ret = take_part(w, key + i);
		}
		if (ret)
			return ret;
	}
	return 0;
}

static void check_sums(struct mi3_walk *w)
{
	w->heap->checksum_known = true;
	w->heap->exact = !w->heap->doubt[0];
	w->heap->arenas = (uint32_t)w->heaps.n;
	vec_for_each (&w->heaps, h) {
		if (h->pages)
			heap_doubt(w->heap,
				   "heap 0x%" PRIx64 ": pages counted but not found: %" PRId64,
				   h->addr, h->pages);
	}
	scan_doubt_threads(w->img, "mimalloc", w->heap);
}

int mimalloc_3_walk(struct image *img, struct heap *heap)
{
	struct mi3_walk *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->img = img;
	w->heap = heap;
	collect_keys(w);
	ret = scan_modules_with(img, "mimalloc: ", 0, find_map, w);
	if (!ret)
		ret = -ENOENT;
	if (ret > 0)
		ret = take_pages(w);
	if (!ret) {
		check_sums(w);
		snprintf(heap->version, sizeof(heap->version), "3.0");
	}
	vec_free(&w->heaps);
	vec_free(&w->arenas);
	image_view_free(&w->view);
	free(w);
	return ret;
}
