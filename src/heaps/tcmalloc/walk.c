/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for gperftools' tcmalloc (2.8 to 2.18; 48-bit addresses, 8 KiB pages).
 *
 * Layout: span.h, pagemap.h, page_heap.h, central_freelist.h, thread_cache.h.  A two-level page map
 * leads to spans.  Objects of a small class are free if they are in their span's list, in a batch
 * in transfer, or in a thread's cache.  The heap is exact only if every span's count of objects
 * outside its list, the central lists' counts of spans and free objects and the lengths of all
 * caches' lists agree with what was found, and all cached objects are in spans.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/free_list.h"
#include "heaps/scan.h"
#include "heaps/tcmalloc/tcmalloc.h"
#include "heaps/walker.h"
#include "lib/human.h"

static void tc_free(struct tc *tc)
{
	addr_list_free(&tc->cached);
	image_view_free(&tc->view);
	free(tc->leaf);
}

static int take_objects(struct tc *tc, const struct tc_span *s, uint32_t capacity,
			const uint8_t *is_free)
{
	uint64_t at = s->start << TC_PAGE_SHIFT, size = (uint64_t)tc->size[s->class];
	int ret = 0;

	for (uint32_t i = 0; !ret && i < capacity; i++, at += size) {
		if (is_free[i])
			continue;
		if (addr_list_take(&tc->cached, at))
			tc->heap->cached_bytes += size;
		else
			ret = heap_add(tc->heap, at, size);
	}
	return ret;
}

static int take_small(struct tc *tc, const struct tc_span *s)
{
	uint64_t base = s->start << TC_PAGE_SHIFT, bytes = s->pages << TC_PAGE_SHIFT;
	uint32_t capacity = (uint32_t)(bytes / (uint64_t)tc->size[s->class]), n;
	uint8_t *is_free;
	int ret;

	/* A span without an object in use belongs to the page heap, so a thread is taking this one from
	 * there or giving it back (Populate(), ReleaseToSpans() in gperftools' central_freelist.cc).
	 * The central list does not count it, and its list can be incomplete. */
	if (!s->refcount) {
		heap_doubt_now(tc->heap, "a thread was changing the span 0x%" PRIx64, base);
		tc->heap->free_bytes += bytes;
		return 0;
	}
	is_free = calloc(capacity + 1, 1);
	if (!is_free)
		return -ENOMEM;
	n = free_list_mark(
	    tc->img, &tc->view,
	    &(struct free_list_area){base, (uint64_t)tc->size[s->class], capacity, is_free},
	    s->objects);
	if (n == FREE_LIST_BROKEN) {
		heap_damage(tc->heap, base, "span: its free list is broken");
		heap_doubt(tc->heap, "a span's free list is broken");
	} else {
		if (s->refcount != capacity - n)
			heap_doubt(tc->heap,
				   "span 0x%" PRIx64 ": %u object%s in use, its counter says %u",
				   base, capacity - n, plural(capacity - n), s->refcount);
		tc->counted[s->class].free_objects -= n;
		tc->heap->free_bytes += n * (uint64_t)tc->size[s->class];
	}
	tc->counted[s->class].spans--;
	ret = take_objects(tc, s, capacity, is_free);
	free(is_free);
	return ret;
}

/* Do the span's first and last page lead to it, are its pages mapped, and do they not overlap the
 * span before? */
static bool plausible(struct tc *tc, const struct tc_span *s, size_t index)
{
	uint64_t base = s->start << TC_PAGE_SHIFT, last = index + s->pages - 1;

	if (s->pages >= TC_ROOT_WORDS << TC_LEAF_SHIFT ||
	    (last < 1ull << TC_LEAF_SHIFT && tc->leaf[last] != tc->leaf[index]))
		return false;
	if (s->class && tc_location(s) == TC_IN_USE &&
	    (s->class >= tc->classes || s->pages != tc->pages[s->class]))
		return false;
	return base >= tc->end &&
	       scan_all_writable(tc->img, base, base + (s->pages << TC_PAGE_SHIFT));
}

static int take_span(struct tc *tc, size_t index, uint64_t page)
{
	struct tc_span s;
	uint64_t at = tc->leaf[index], base = page << TC_PAGE_SHIFT, bytes;
	int ret;

	/* Inner pages of a large or free span keep outdated entries. */
	if (!image_read_all(tc->img, at, &s, sizeof(s)) || s.start != page || !s.pages)
		return 0;
	bytes = s.pages << TC_PAGE_SHIFT;
	if (!plausible(tc, &s, index)) {
		heap_damage(tc->heap, at, "span at 0x%" PRIx64 " has a wrong size or class", base);
		heap_doubt(tc->heap, "a span has a wrong size or class");
		return 0;
	}
	tc->end = base + bytes;
	tc->heap->metadata_bytes += sizeof(s);
	ret = heap_own(tc->heap, base, base + bytes, HEAP_ARENA);
	if (ret)
		return ret;
	if (tc_location(&s) != TC_IN_USE) {
		tc->heap->free_bytes += tc_location(&s) == TC_FREE ? bytes : 0;
		return 0;
	}
	if (!s.class)
		return heap_add(tc->heap, base, bytes);
	return take_small(tc, &s);
}

static int take_leaf(struct tc *tc, uint64_t leaf, uint64_t block)
{
	int ret = heap_own(tc->heap, leaf, leaf + TC_LEAF_BYTES, HEAP_METADATA);

	if (!image_read_all(tc->img, leaf, tc->leaf, TC_LEAF_BYTES)) {
		heap_damage(tc->heap, leaf, "part of the page map cannot be read");
		heap_doubt(tc->heap, "part of the page map cannot be read");
		return 0;
	}
	for (size_t i = 0; !ret && i < 1ull << TC_LEAF_SHIFT; i++) {
		if (tc->leaf[i])
			ret = take_span(tc, i, (block << TC_LEAF_SHIFT) + i);
	}
	return ret;
}

static int take_pages(struct tc *tc)
{
	uint64_t root[1024];
	int ret = 0;

	for (uint64_t block = 0; block < TC_ROOT_WORDS; block += 1024) {
		if (!image_read_all(tc->img, tc->root + block * 8, root, sizeof(root)))
			return 0;
		for (int i = 0; !ret && i < 1024; i++) {
			if (root[i])
				ret = take_leaf(tc, root[i], block + i);
		}
		if (ret)
			return ret;
	}
	return 0;
}

static void check_sums(struct tc *tc)
{
	size_t missed = tc->cached.list.n - tc->cached.matched;

	tc->heap->checksum_known = true;
	tc->heap->exact = !tc->heap->doubt[0];
	for (unsigned c = 1; c < tc->classes; c++) {
		if (tc->counted[c].spans || tc->counted[c].free_objects)
			heap_doubt(tc->heap,
				   "blocks of %d bytes: counted in the central list but not found: "
				   "spans %" PRId64 ", free blocks %" PRId64,
				   tc->size[c], tc->counted[c].spans, tc->counted[c].free_objects);
	}
	if (missed)
		heap_doubt(tc->heap, "blocks in caches that are not in any span: %zu", missed);
	scan_doubt_threads(tc->img, "tcmalloc", tc->heap);
}

static int walk_spans(struct tc *tc)
{
	int ret = tc_take_caches(tc);

	if (ret)
		return ret;
	addr_list_sort(&tc->cached);
	tc->leaf = malloc(TC_LEAF_BYTES);
	return tc->leaf ? take_pages(tc) : -ENOMEM;
}

static int walk_tcmalloc(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct tc tc = {.img = img, .heap = heap};
	int ret = tc_find(&tc);

	if (ret == -ENOENT)
		return ret;
	heap->allocator = "tcmalloc";
	heap->arenas = 1;
	if (!ret)
		ret = walk_spans(&tc);
	if (!ret)
		check_sums(&tc);
	tc_free(&tc);
	if (ret)
		heap_free(heap);
	if (ret == -ENOTSUP)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "the process has tcmalloc, but of a version whose layout memprof "
			       "does not know");
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	snprintf(heap->version, sizeof(heap->version), "%s", tc.layout->version);
	heap_finish(heap);
	return 0;
}

const struct walker walker_tcmalloc = {
    .name = "tcmalloc",
    .machines = "x86_64 aarch64",
    .library = "tcmalloc",
    .walk = walk_tcmalloc,
};
