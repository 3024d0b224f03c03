/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds glibc's mmapped chunks.  They begin at the start of a page, with prev_size 0, the flag
 * IS_MMAPPED and a size of whole pages.  memalign() leaves this header stale and writes another one
 * further up, whose prev_size is its distance from the mapping's start.  mp_ counts these chunks.
 */
#include <errno.h>
#include "heaps/glibc/glibc.h"
#include "lib/human.h"

#define MAX_ALIGN_BITS 31

struct mmapped_sum {
	uint64_t count, bytes;
};

static bool mmapped(const struct glibc *g, const struct chunk *c, uint64_t offset, uint64_t *total)
{
	uint64_t size = c->size & ~(uint64_t)SIZE_BITS;

	*total = size + offset;
	return (c->size & SIZE_BITS) == IS_MMAPPED && c->prev_size == offset &&
	       size >= g->l->chunk_min && *total % PAGE == 0;
}

/* Finds the chunk that memalign() made in the mapping at @map.  Return: its distance from the
 * start; 0: none.  *@total: bytes of the mapping, which realloc() can have changed since. */
static uint64_t aligned_chunk(struct glibc *g, uint64_t map, uint64_t left, uint64_t *total)
{
	for (unsigned int k = 5; k <= MAX_ALIGN_BITS; k++) {
		uint64_t align = 1ull << k;
		uint64_t mem = (map + g->l->header + align - 1) & ~(align - 1);

		for (int again = 0; again < 2; again++, mem += align) {
			uint64_t offset = mem - g->l->header - map, t;
			struct chunk c;

			if (!offset || offset + g->l->chunk_min > left)
				continue;
			if (glibc_chunk_alone(g, map + offset, &c) && mmapped(g, &c, offset, &t) &&
			    t <= left) {
				*total = t;
				return offset;
			}
		}
	}
	return 0;
}

/* Return: bytes of the mapping that begins with chunk @c at @at; 0: there is none; or -ENOMEM. */
static int64_t check_mapping(struct glibc *g, const struct chunk *c, uint64_t at, uint64_t end,
			     struct mmapped_sum *f)
{
	uint64_t total, offset;

	if (!mmapped(g, c, 0, &total))
		return 0;
	offset = aligned_chunk(g, at, end - at, &total);
	if (total > end - at)
		return 0;
	if (heap_add(g->heap, at + offset + g->l->header, total - offset - g->l->header) ||
	    heap_own(g->heap, at, at + total, HEAP_MMAPPED))
		return -ENOMEM;
	g->heap->metadata_bytes += offset + g->l->header;
	f->count++;
	f->bytes += total;
	return (int64_t)total;
}

static uint64_t page_up(uint64_t at)
{
	return (at + PAGE - 1) & ~(PAGE - 1);
}

static bool complete(const struct glibc *g, const struct mmapped_sum *f)
{
	return g->par.known && f->count == g->par.n_mmaps && f->bytes == g->par.mmapped_mem;
}

/* Finds mapped chunks at the start of @m, and directly behind each other.  Return: 0 or -ENOMEM. */
static int walk_start(struct glibc *g, const struct image_map *m, size_t nknown,
		      struct mmapped_sum *f)
{
	uint64_t at = m->start;

	while (at < m->end && !complete(g, f)) {
		const struct heap_range *r = heap_owner(g->heap, nknown, at);
		struct chunk c;
		int64_t n;

		if (r) {
			at = page_up(r->end);
			continue;
		}
		n = glibc_chunk_alone(g, at, &c) ? check_mapping(g, &c, at, m->end, f) : 0;
		if (n <= 0)
			return (int)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Finds mapped chunks at every page of @m that was ever touched. */
static int walk_pages(struct glibc *g, const struct image_map *m, size_t nknown,
		      struct mmapped_sum *f)
{
	uint64_t at = m->start, run = at;

	while (at < m->end && !complete(g, f)) {
		const struct heap_range *r = heap_owner(g->heap, nknown, at);
		struct chunk c;
		int64_t n = 0;

		if (r) {
			at = page_up(r->end);
			continue;
		}
		if (at >= run) {
			run = image_present(g->img, m, &at);
			if (!run)
				break;
			continue;
		}
		if (glibc_chunk_at(g, &g->probe, at, &c))
			n = check_mapping(g, &c, at, m->end, f);
		if (n < 0)
			return (int)n;
		at += n ? (uint64_t)n : PAGE;
	}
	return 0;
}

int glibc_walk_mmapped(struct glibc *g)
{
	struct mmapped_sum f = {0};
	int ret = 0;

	/* First at the starts of maps, then at every page, since mappings can have merged with a
	 * neighbour. */
	for (int every_page = 0; every_page < 2 && !complete(g, &f); every_page++) {
		size_t nknown;

		heap_sort_owned(g->heap);
		nknown = g->heap->owned.n;
		vec_for_each (&g->img->maps, m) {
			if (!ret && glibc_anonymous(m))
				ret = every_page ? walk_pages(g, m, nknown, &f)
						 : walk_start(g, m, nknown, &f);
		}
		if (ret)
			return ret;
		if (!g->par.known)
			break;
	}
	if (g->par.known && !complete(g, &f))
		heap_doubt(g->heap,
			   "%llu mapping%s of %llu bytes %s found, and the allocator counts %u of "
			   "%llu",
			   (unsigned long long)f.count, plural(f.count),
			   (unsigned long long)f.bytes, f.count == 1 ? "was" : "were",
			   g->par.n_mmaps, (unsigned long long)g->par.mmapped_mem);
	return 0;
}
