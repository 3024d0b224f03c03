/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for musl's old malloc (musl before 1.2.1, and later --with-malloc=oldmalloc; 64 bit).
 *
 * Layout: src/malloc/oldmalloc/malloc.c and malloc_impl.h of musl 1.2.3.  The size of a chunk is in
 * its header, and again where the next one begins; bit 0 means in use.  Regions begin and end with
 * headers of size 0, in use.  They are the break, mappings if it cannot grow, and the ends of
 * modules' pages that the dynamic linker donated.  Large blocks have their own mappings, which are
 * not counted anywhere.  64 bins have the free chunks.  The heap is exact only if the number and
 * the bytes of free chunks agree with those in the bins, and the two sizes of every chunk agree.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "heaps/chain.h"
#include "heaps/musl/musl.h"
#include "heaps/scan.h"
#include "heaps/walker.h"

#define PAGE	      4096ull
#define FENCE	      MUSL_OLD_IN_USE /* size 0, in use */
#define PROBE_CHUNKS  16	      /* number of consecutive chunks that make a chain */
#define NEAR_PAGES    512 /* an aligned block is searched for this far into a mapping, and ... */
#define MAX_ALIGN_LOG 34  /* ... at multiples of larger powers of 2 */

struct sum {
	uint64_t chunks, bytes;
};

struct old_walk {
	struct image *img;
	struct heap *heap;
	struct image_view view, probe;
	uint64_t at; /* address of mal */
	struct musl_old_mal mal;
	struct sum free, binned;
	bool locked;
};

static bool read_header(struct old_walk *w, struct image_view *v, uint64_t at,
			struct musl_old_chunk *c)
{
	const void *p = image_view(w->img, v, at, MUSL_OLD_OVERHEAD);

	if (p)
		memcpy(c, p, MUSL_OLD_OVERHEAD);
	return p;
}

/* Is there room after the header at @at for its bytes and one more header? */
static bool fits(const struct musl_old_chunk *c, uint64_t at, uint64_t end)
{
	return musl_old_plausible(c->csize) && end - at > MUSL_OLD_OVERHEAD &&
	       musl_old_size(c->csize) <= end - at - MUSL_OLD_OVERHEAD;
}

/* Are there consecutive chunks from @at on, to the region's end or PROBE_CHUNKS of them? */
static bool is_chain(struct old_walk *w, uint64_t at, uint64_t end)
{
	struct musl_old_chunk c, next;

	if (!read_header(w, &w->probe, at, &c))
		return false;
	for (int i = 0; i < PROBE_CHUNKS; i++) {
		if (c.csize == FENCE)
			return i;
		if (!fits(&c, at, end) ||
		    !read_header(w, &w->probe, at + musl_old_size(c.csize), &next) ||
		    next.psize != c.csize)
			return false;
		at += musl_old_size(c.csize);
		c = next;
	}
	return true;
}

static void damaged(struct old_walk *w, uint64_t at, const char *what)
{
	if (w->locked) {
		heap_doubt_now(w->heap, "a thread was changing chunks at 0x%" PRIx64, at);
		return;
	}
	heap_damage(w->heap, at, "%s", what);
	heap_doubt(w->heap, "0x%" PRIx64 ": %s", at, what);
}

/* Handles an invalid header at @at.  Return: where a chain begins again, or @end. */
static uint64_t skip_damage(struct old_walk *w, uint64_t at, uint64_t end)
{
	uint64_t next = at + MUSL_OLD_ALIGN;

	damaged(w, at, "chunk header overwritten");
	while (next + MUSL_OLD_OVERHEAD <= end && !is_chain(w, next, end))
		next += MUSL_OLD_ALIGN;
	return next + MUSL_OLD_OVERHEAD <= end ? next : end;
}

static int take_chunk(struct old_walk *w, uint64_t at, const struct musl_old_chunk *c)
{
	w->heap->metadata_bytes += MUSL_OLD_OVERHEAD;
	if (c->csize & MUSL_OLD_IN_USE)
		return heap_add(w->heap, at + MUSL_OLD_OVERHEAD,
				musl_old_size(c->csize) - MUSL_OLD_OVERHEAD);
	w->free.chunks++;
	w->free.bytes += c->csize;
	w->heap->free_bytes += c->csize - MUSL_OLD_OVERHEAD;
	return 0;
}

/* Walks the region whose first header is at @at.  Return: its end, or -ENOMEM. */
static int64_t take_region(struct old_walk *w, uint64_t at, uint64_t end)
{
	uint64_t start = at;
	struct musl_old_chunk c = {0}, next = {0};
	bool ok = read_header(w, &w->view, at, &c);

	while (ok && c.csize != FENCE) {
		uint64_t size = musl_old_size(c.csize), from = at;

		ok = fits(&c, at, end) && read_header(w, &w->view, at + size, &next);
		if (ok) {
			if (take_chunk(w, at, &c))
				return -ENOMEM;
			at += size;
			if (next.psize != c.csize)
				damaged(
				    w, from,
				    "the chunk's size and the copy of it in the next chunk differ");
			c = next;
			continue;
		}
		at = skip_damage(w, at, end);
		if (heap_skip(w->heap, from, at))
			return -ENOMEM;
		ok = at < end && read_header(w, &w->view, at, &c);
	}
	at = at + MUSL_OLD_OVERHEAD < end ? at + MUSL_OLD_OVERHEAD : end;
	return heap_own(w->heap, start, at, HEAP_ARENA) ? -ENOMEM : (int64_t)at;
}

/* The end of the adjacent maps from the one that contains @addr on. */
static uint64_t end_of_maps(const struct image *img, uint64_t addr)
{
	const struct image_map *m = image_map_at(img, addr), *last = img->maps.at + img->maps.n;

	while (m + 1 < last && m[1].start == m->end && m[1].write && !m[1].shared && !m[1].path[0])
		m++;
	return m->end;
}

/* Walks back from the end of a region, which is at the end of a page, to its first header.  Return:
 * its address; 0: there is no region. */
static uint64_t start_of_region(struct old_walk *w, uint64_t end, uint64_t limit)
{
	uint64_t at = end - MUSL_OLD_OVERHEAD, size;
	struct musl_old_chunk c, before;

	if (!image_read_all(w->img, at, &c, MUSL_OLD_OVERHEAD) || c.csize != FENCE)
		return 0;
	while (c.psize != FENCE) {
		size = musl_old_size(c.psize);
		if (!musl_old_plausible(c.psize) || size > at - limit ||
		    !image_read_all(w->img, at - size, &before, MUSL_OLD_OVERHEAD) ||
		    before.csize != c.psize)
			return 0;
		at -= size;
		c = before;
	}
	return at == end - MUSL_OLD_OVERHEAD ? 0 : at;
}

/* Walks the regions that the dynamic linker donated from a module's data; each ends with a page. */
static int take_donated(const struct scan_data *d, void *arg)
{
	struct old_walk *w = arg;
	uint64_t limit = d->start, end = d->start + d->n * 8;

	for (uint64_t page = d->start + PAGE; page <= end; page += PAGE) {
		uint64_t at = start_of_region(w, page, limit);
		int64_t ret = at ? take_region(w, at, page) : 0;

		if (ret < 0)
			return (int)ret;
		limit = at ? page : limit;
	}
	return 0;
}

/* Is it a block with its own mapping?  Its size plus its distance from the mapping's start is a
 * multiple of the page size. */
static bool is_mapped(const struct musl_old_chunk *c, uint64_t offset, uint64_t left)
{
	return c->psize == offset && musl_old_plausible(c->csize + offset) &&
	       !(c->csize & MUSL_OLD_IN_USE) && (c->csize + offset) % PAGE == 0 &&
	       c->csize < left && c->csize + offset <= left;
}

static bool mapped_at(struct old_walk *w, uint64_t map, uint64_t offset, uint64_t left,
		      struct musl_old_chunk *c)
{
	return offset + MUSL_OLD_OVERHEAD <= left &&
	       image_read_all(w->img, map + offset, c, MUSL_OLD_OVERHEAD) &&
	       is_mapped(c, offset, left);
}

/* aligned_alloc() leaves the first header stale and writes another one further up; realloc() can
 * have moved the mapping since.  Return: the second header's distance from the mapping's start, or
 * 0. */
static uint64_t aligned_offset(struct old_walk *w, uint64_t map, uint64_t left,
			       struct musl_old_chunk *c)
{
	for (uint64_t align = 2 * MUSL_OLD_ALIGN; align < PAGE; align *= 2) {
		if (mapped_at(w, map, align - MUSL_OLD_OVERHEAD, left, c))
			return align - MUSL_OLD_OVERHEAD;
	}
	for (uint64_t page = 1; page <= NEAR_PAGES && page * PAGE < left; page++) {
		if (mapped_at(w, map, page * PAGE - MUSL_OLD_OVERHEAD, left, c))
			return page * PAGE - MUSL_OLD_OVERHEAD;
	}
	for (int k = 21; k <= MAX_ALIGN_LOG; k++) {
		uint64_t align = 1ull << k, offset = -map & (align - 1);

		if (offset && mapped_at(w, map, offset - MUSL_OLD_OVERHEAD, left, c))
			return offset - MUSL_OLD_OVERHEAD;
	}
	return 0;
}

/* Return: bytes of the mapping at @map; 0: it has no block; or -ENOMEM. */
static int64_t take_mapped(struct old_walk *w, uint64_t map, uint64_t left)
{
	struct musl_old_chunk first, c;
	uint64_t offset = MUSL_OLD_OVERHEAD, aligned, bytes;

	if (!image_read_all(w->img, map + offset, &first, sizeof(first)) || first.psize != offset ||
	    first.csize & MUSL_OLD_IN_USE || (first.csize + offset) % PAGE != 0)
		return 0;
	aligned = aligned_offset(w, map, left, &c);
	if (!aligned && !is_mapped(&first, offset, left))
		return 0;
	if (aligned)
		offset = aligned;
	else
		c = first;
	bytes = offset + c.csize;
	w->heap->metadata_bytes += offset + MUSL_OLD_OVERHEAD;
	if (heap_add(w->heap, map + offset + MUSL_OLD_OVERHEAD, c.csize - MUSL_OLD_OVERHEAD) ||
	    heap_own(w->heap, map, map + bytes, HEAP_MMAPPED))
		return -ENOMEM;
	return (int64_t)bytes;
}

/* Handles what begins at the page @at.  Return: where to continue, or -ENOMEM. */
static int64_t take_page(struct old_walk *w, uint64_t at, uint64_t end)
{
	uint64_t first = at + MUSL_OLD_OVERHEAD, psize;
	int64_t ret;

	if (!image_word(w->img, first, &psize))
		return (int64_t)(at + PAGE);
	if (psize == FENCE && is_chain(w, first, end)) {
		ret = take_region(w, first, end);
		return ret < 0 ? ret : (int64_t)(((uint64_t)ret + PAGE - 1) & -PAGE);
	}
	ret = psize == MUSL_OLD_OVERHEAD ? take_mapped(w, at, end - at) : 0;
	return ret ? (ret < 0 ? ret : (int64_t)at + ret) : (int64_t)(at + PAGE);
}

static bool may_hold_blocks(const struct image_map *m)
{
	return m->write && !m->shared &&
	       (!m->path[0] || !strcmp(m->path, "[heap]") || !strncmp(m->path, "[anon", 5));
}

static int take_pages(struct old_walk *w)
{
	size_t nknown;
	uint64_t at = 0;

	heap_sort_owned(w->heap);
	nknown = w->heap->owned.n;
	vec_for_each (&w->img->maps, m) {
		at = at > m->start ? at : m->start;
		while (may_hold_blocks(m) && at < m->end) {
			const struct heap_range *known = heap_owner(w->heap, nknown, at + PAGE / 2);
			int64_t next = known ? (int64_t)((known->end + PAGE - 1) & -PAGE)
					     : take_page(w, at, end_of_maps(w->img, at));

			if (next < 0)
				return (int)next;
			at = (uint64_t)next;
		}
	}
	return 0;
}

static void count_bin(struct old_walk *w, int i)
{
	uint64_t end = musl_old_bin_chunk(w->at, i), at = w->mal.bins[i].head;
	struct musl_old_chunk c = {.prev = end};
	uint64_t before = end;
	struct chain chain = {0};

	for (; at && at != end; at = c.next) {
		if (chain_cycles(&chain, at) || !image_read_all(w->img, at, &c, sizeof(c)) ||
		    c.prev != before || c.csize & MUSL_OLD_IN_USE) {
			damaged(w, at, "a bin's list is broken");
			return;
		}
		w->binned.chunks++;
		w->binned.bytes += c.csize;
		before = at;
	}
	if ((w->mal.binmap >> i & 1) != (before != end))
		damaged(w, w->at, "the bin map and a bin disagree");
}

static void look_at_locks(struct old_walk *w)
{
	w->locked = w->mal.lock[0];
	for (int i = 0; i < MUSL_OLD_BINS; i++)
		w->locked |= w->mal.bins[i].lock[0] != 0;
	w->heap->busy = w->locked;
}

static void check_sums(struct old_walk *w)
{
	w->heap->checksum_known = true;
	w->heap->exact = !w->heap->doubt[0];
	if (w->locked)
		heap_doubt_now(w->heap, "a thread was changing the heap");
	if (w->free.chunks != w->binned.chunks || w->free.bytes != w->binned.bytes)
		heap_doubt(w->heap,
			   "free chunks: %" PRIu64 " of %" PRIu64 " bytes, in the bins: %" PRIu64
			   " of %" PRIu64,
			   w->free.chunks, w->free.bytes, w->binned.chunks, w->binned.bytes);
}

static int walk_regions(struct old_walk *w)
{
	int ret;

	look_at_locks(w);
	w->heap->arenas = 1;
	ret = scan_modules(w->img, take_donated, w);
	if (!ret)
		ret = take_pages(w);
	for (int i = 0; !ret && i < MUSL_OLD_BINS; i++)
		count_bin(w, i);
	if (!ret)
		check_sums(w);
	return ret;
}

static int walk_oldmalloc(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct old_walk w = {.img = img, .heap = heap};
	int ret = musl_old_find(img, &w.at, &w.mal), ng;

	heap->allocator = "musl oldmalloc";
	if (!ret) {
		/* A dynamic musl always has one of the two, since the linker donates memory at the
		 * start. */
		ng = musl_is_there(img) ? musl_ng_is_there(img) : 1;
		if (ng > 0)
			return -ENOENT;
		ret = ng ? ng : -ENOTSUP;
	} else if (ret > 0) {
		ret = walk_regions(&w);
	}
	image_view_free(&w.view);
	image_view_free(&w.probe);
	if (ret == -ENOTSUP)
		return mp_fail(
		    err, MP_EXIT_FAILURE, ret,
		    "the process has musl, but a malloc whose layout memprof does not know");
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	heap_finish(heap);
	return 0;
}

const struct walker walker_musl_old = {
    .name = "musl oldmalloc",
    .machines = "x86_64",
    .library = "-musl",
    .walk = walk_oldmalloc,
};
