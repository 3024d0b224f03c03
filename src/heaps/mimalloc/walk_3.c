/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for mimalloc 3 (release builds, whose free lists are not encoded).
 *
 * A map of two levels, to which a static variable points, leads from each slice of 64 KiB to
 * its page: blocks of one size, and a header.  The header is before the blocks, or (3.4) in a table
 * of their arena, or (3.6) in a table at the start of the 256 MiB around them.  A block is free if
 * it is in one of its page's three lists.  The heap is exact only if every page's count of blocks
 * in use and every heap's count of pages agree with what was found.  Pages of exited threads have
 * no heap.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/free_list.h"
#include "heaps/mimalloc/mimalloc.h"
#include "heaps/mimalloc/mimalloc_3.h"
#include "heaps/scan.h"

#define ABANDONED 7ull /* page.thread up to here: of no thread */
/* Of 256 GiB that were freed.  A damaged map could have entries without end. */
#define MAX_PAGELESS (1u << 22)
#define QUEUE_WORDS  5 /* first, last, count, block size, another one */

/* Sets the first page of each queue of @heap.  Return: how many pages its queues count. */
static int64_t sum_queues(struct mi3 *w, uint64_t heap, uint64_t first[MI3_MAX_QUEUES])
{
	uint64_t queues[MI3_MAX_QUEUES][QUEUE_WORDS];
	int64_t sum = 0;

	if (!image_read_all(w->img, heap + w->layout->heap_pages, queues, sizeof(queues)))
		return 0;
	for (int i = 0; i < MI3_MAX_QUEUES; i++) {
		first[i] = queues[i][0];
		sum += (int64_t)queues[i][2];
	}
	return sum;
}

/* Is the page in one of the queues of the heap that it names?  It can name one that is gone. */
static bool in_queue(struct mi3 *w, uint64_t at, const struct mi3_page *p)
{
	uint64_t first[MI3_MAX_QUEUES] = {0};

	if (p->prev)
		return mi3_word(w, p->prev + w->layout->next) == at;
	sum_queues(w, p->heap, first);
	for (int i = 0; i < MI3_MAX_QUEUES; i++) {
		if (first[i] == at)
			return true;
	}
	return false;
}

/* Return: whether a heap counts the page. */
static bool is_counted(struct mi3 *w, uint64_t at, const struct mi3_page *p)
{
	if (!p->heap || w->layout->header == MI3_BEFORE || p->thread > ABANDONED)
		return p->heap;
	return w->layout->queues && !p->thread && in_queue(w, at, p);
}

static int count_page(struct mi3 *w, uint64_t at, const struct mi3_page *p)
{
	uint64_t first[MI3_MAX_QUEUES];
	struct mi3_heap h = {.addr = p->heap};

	if (!is_counted(w, at, p))
		return 0;
	vec_for_each (&w->heaps, it) {
		if (it->addr == p->heap) {
			it->pages--;
			return 0;
		}
	}
	h.pages = w->layout->queues ? sum_queues(w, p->heap, first)
				    : (int64_t)mi3_word(w, p->heap + w->layout->heap_pages);
	h.pages--;
	return vec_push(&w->heaps, h);
}

/* Marks the whole arena as mimalloc's, including its tables, the threads' heaps, and free slices.
 */
static int own_arena(struct mi3 *w, uint64_t at)
{
	uint64_t slices[2], end; /* all, and those of mimalloc's own tables */
	uint64_t start = w->layout->header == MI3_IN_CHUNK ? at & -MI3_CHUNK : at;

	vec_for_each (&w->arenas, it) {
		if (*it == at)
			return 0;
	}
	if (vec_push(&w->arenas, at))
		return -ENOMEM;
	if (!image_read_all(w->img, at + w->layout->arena_slices, slices, sizeof(slices)) ||
	    slices[1] > slices[0])
		return 0;
	end = start + (slices[0] << MI3_SLICE_SHIFT);
	w->heap->metadata_bytes += slices[1] << MI3_SLICE_SHIFT;
	return end > start && scan_all_writable(w->img, start, end)
		   ? heap_own(w->heap, start, end, HEAP_ARENA)
		   : 0;
}

static int take_blocks(struct mi3 *w, const struct free_list_area *a)
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

static void mark_lists(struct mi3 *w, const struct mi3_page *p, const struct free_list_area *a)
{
	struct mi_lists lists = {p->free, p->local_free, p->thread_free, p->used, p->capacity};

	mi_mark_lists(w->img, &w->view, w->heap, a, &lists);
}

/* The map still has pages that were freed as a whole.  Their memory can have been unmapped, purged or
 * reused since, so nothing but the header's own fields says anything about them. */
static bool is_gone(const struct mi3_page *p)
{
	return !p->heap && !p->used && (p->block_size || !p->raw_start);
}

/* Where the memory begins that is the page's, with the header if that is before the blocks. */
static uint64_t begin_of(const struct mi3 *w, uint64_t at, const struct mi3_page *p)
{
	uint64_t mapping = p->mem.arena; /* if it is not in an arena */

	if (p->start - at < MI3_SLICE)
		return at;
	if (p->mem.kind != w->layout->arena_kind && mapping <= at && at < p->start &&
	    p->start - mapping <= MI3_CHUNK)
		return mapping;
	return p->start;
}

static int own_page(struct mi3 *w, uint64_t at, const struct mi3_page *p)
{
	bool in_arena = p->mem.kind == w->layout->arena_kind;
	uint64_t begin = begin_of(w, at, p);

	w->end = mi3_end(p);
	w->heap->metadata_bytes += p->start - begin;
	if (count_page(w, at, p) || (in_arena && own_arena(w, p->mem.arena)))
		return -ENOMEM;
	return heap_own(w->heap, begin, w->end, in_arena ? HEAP_ARENA : HEAP_MMAPPED);
}

/* @at: header of the page to which the map's entry for @slice leads */
static int take_page(struct mi3 *w, uint64_t at, uint64_t slice)
{
	struct free_list_area area;
	struct mi3_page p = {0};
	bool is_read;
	int ret;

	/* An entry, possibly outdated, for the inside of a longer page. */
	if (slice < w->end || at == w->last)
		return 0;
	is_read = mi3_read(w, at, &p);
	if (is_read && is_gone(&p)) {
		w->pageless++;
		return 0;
	}
	if (!is_read || !mi3_valid(w, at, slice, &p)) {
		heap_damage(w->heap, at, "page's header is damaged");
		heap_doubt(w->heap, "the header of the page at 0x%" PRIx64 " is damaged", at);
		w->pageless++;
		return 0;
	}
	w->last = at;
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

static int take_part(struct mi3 *w, uint64_t key)
{
	int ret = 0;

	if (!mi3_read_part(w, w->map, key)) {
		heap_damage(w->heap, w->map + key * 8, "part of the page map cannot be read");
		heap_doubt(w->heap, "part of the page map cannot be read");
		return 0;
	}
	for (size_t i = 0; !ret && i < MI3_SUB_WORDS; i++) {
		uint64_t at = w->sub[i], slice = mi3_slice(key, i);

		if (!at || (w->layout->header == MI3_BEFORE && at != slice))
			continue;
		if (w->pageless > MAX_PAGELESS) {
			heap_doubt(w->heap, "too many entries of the page map have no page");
			return 0;
		}
		ret = take_page(w, at, slice);
	}
	return ret;
}

static int take_pages(struct mi3 *w)
{
	uint64_t part[512];
	int ret = 0;

	for (uint64_t key = 0; key < mi3_parts(w); key += 512) {
		if (!image_read_all(w->img, w->map + w->layout->map + key * 8, part, sizeof(part)))
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

static void check_sums(struct mi3 *w)
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
	struct mi3 *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->img = img;
	w->heap = heap;
	ret = mi3_find(w);
	if (!ret)
		ret = -ENOENT;
	if (ret > 0)
		ret = take_pages(w);
	if (!ret) {
		check_sums(w);
		snprintf(heap->version, sizeof(heap->version), "%s", w->layout->version);
	}
	vec_free(&w->heaps);
	vec_free(&w->arenas);
	image_view_free(&w->view);
	free(w);
	return ret;
}
