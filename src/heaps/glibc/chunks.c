/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Walks the chunks of glibc's arenas from header to header, up to the top chunk or a fencepost. */
#include <errno.h>
#include <string.h>
#include "heaps/glibc/glibc.h"

#define PROBE_CHUNKS 32 /* number of consecutive plausible chunks that make a chain */

enum stop {
	STOP_TOP,
	STOP_FENCE,  /* @at is the fencepost */
	STOP_END,    /* the end of the region */
	STOP_BROKEN, /* the header at @at is not valid */
	STOP_MEMORY,
};

struct region {
	const struct glibc_arena *arena;
	uint64_t at, end;
};

bool glibc_chunk_at(struct glibc *g, struct image_view *v, uint64_t at, struct chunk *c)
{
	const void *p = image_view(g->img, v, at, g->l->header);

	if (!p)
		return false;
	c->prev_size = glibc_word(g, p, 0);
	c->size = glibc_word(g, p, g->l->word);
	return true;
}

bool glibc_chunk_alone(struct glibc *g, uint64_t at, struct chunk *c)
{
	return image_word(g->img, at, &c->prev_size) &&
	       image_word(g->img, at + g->l->word, &c->size);
}

bool glibc_anonymous(const struct image_map *m)
{
	return m->write && !m->shared && (!m->path[0] || !strncmp(m->path, "[anon", 5));
}

static uint64_t size_of(const struct chunk *c)
{
	return c->size & ~(uint64_t)SIZE_BITS;
}

static uint64_t align_up(const struct glibc *g, uint64_t addr)
{
	return (addr + g->l->align - 1) & ~(uint64_t)(g->l->align - 1);
}

static bool plausible(const struct glibc *g, const struct region *r, uint64_t at,
		      const struct chunk *c)
{
	uint64_t size = size_of(c);

	return size >= g->l->chunk_min && !(size % g->l->align) && !(c->size & IS_MMAPPED) &&
	       size <= r->end - at && !(r->arena->main && c->size & NON_MAIN_ARENA);
}

/*
 * Does chunk @c at @at end the memory before a gap?  sysmalloc() ends it with two fenceposts: a chunk
 * of the size of a header and another one, which has size 0 at the end of the heap of an arena other
 * than the main one.  There the former top chunk replaces the first one if it is too small to be freed.
 * Elsewhere such a header is damage.
 */
static bool is_fence(struct glibc *g, struct image_view *v, const struct region *r, uint64_t at,
		     const struct chunk *c)
{
	const uint64_t size = size_of(c), header = g->l->header;
	const bool main = r->arena->main;
	struct chunk next;

	if (size != header && (main || size != 2 * header))
		return false;
	if (!main && at + size + header != r->end)
		return false;
	return glibc_chunk_at(g, v, at + size, &next) &&
	       (main ? size_of(&next) == header : next.size == PREV_INUSE);
}

/* Walks from @r->at.  @record: add the chunks to the heap.  @max: most chunks to walk.  On return
 * @r->at is where it stopped. */
static enum stop walk_chunks(struct glibc *g, struct region *r, bool record, size_t max)
{
	struct image_view *v = record ? &g->view : &g->probe;
	struct chunk c, next;

	if (!glibc_chunk_at(g, v, r->at, &c))
		return STOP_BROKEN;
	while (max--) {
		uint64_t size = size_of(&c);

		if (r->at == r->arena->top) {
			if (size < g->l->chunk_min || size > r->end - r->at)
				return STOP_BROKEN;
			if (record)
				g->heap->free_bytes += size;
			r->at += size;
			return STOP_TOP;
		}
		if (is_fence(g, v, r, r->at, &c))
			return STOP_FENCE;
		if (!plausible(g, r, r->at, &c))
			return STOP_BROKEN;
		if (r->at + size + g->l->header > r->end) {
			r->at += size;
			return STOP_END;
		}
		if (!glibc_chunk_at(g, v, r->at + size, &next))
			return STOP_BROKEN;
		if (!(next.size & PREV_INUSE)) {
			if (next.prev_size != size)
				return STOP_BROKEN;
			if (record)
				g->heap->free_bytes += size;
		} else if (record) {
			if (heap_add(g->heap, r->at + g->l->header, size - g->l->word))
				return STOP_MEMORY;
			g->heap->metadata_bytes += g->l->word;
		}
		r->at += size;
		c = next;
	}
	return STOP_END;
}

/* Return: the next address from @from on where a chain of chunks begins; 0: there is none. */
static uint64_t find_chain(struct glibc *g, const struct region *r, uint64_t from)
{
	for (uint64_t at = align_up(g, from); at + g->l->header <= r->end; at += g->l->align) {
		struct region try = {r->arena, at, r->end};
		struct chunk c;
		enum stop why;

		if (!glibc_chunk_at(g, &g->probe, at, &c)) {
			/* A hole: continue at the next map. */
			const struct image_map *m = image_map_at(g->img, at);

			if (m)
				at = ((at + PAGE) & ~(PAGE - 1)) - g->l->align;
			else
				return 0;
			continue;
		}
		if ((!(c.size & PREV_INUSE) || !plausible(g, r, at, &c)) && at != r->arena->top)
			continue;
		why = walk_chunks(g, &try, false, PROBE_CHUNKS);
		if (why != STOP_BROKEN && (why != STOP_END || try.at < r->end))
			return at;
	}
	return 0;
}

static void report_broken(struct glibc *g, const struct region *r, uint64_t next)
{
	if (g->heap->changing) {
		heap_doubt_now(g->heap, "a thread was changing the arena at %#llx",
			       (unsigned long long)r->arena->addr);
		return;
	}
	heap_damage(g->heap, r->at, "chunk header overwritten; %llu bytes skipped",
		    (unsigned long long)((next ? next : r->end) - r->at));
	heap_doubt(g->heap, "the chunk header at %#llx is overwritten", (unsigned long long)r->at);
}

/*
 * Walks all chains between @r->at and @r->end.  After a fencepost, memory can belong to other code
 * (a foreign sbrk()); after a broken header, the contents are unknown.  Both end where another
 * chain begins.  Return: 0 or -ENOMEM; *@own: bytes that belong to the arena.
 */
static int walk_region(struct glibc *g, struct region r, uint64_t *own)
{
	while (r.at + g->l->header <= r.end) {
		uint64_t start = r.at, next;
		enum stop why = walk_chunks(g, &r, true, SIZE_MAX);

		if (why == STOP_MEMORY)
			return -ENOMEM;
		if (why == STOP_FENCE)
			r.at += 2ull * g->l->header;
		next = why == STOP_TOP || why == STOP_END ? 0 : find_chain(g, &r, r.at);
		if (why == STOP_BROKEN) {
			report_broken(g, &r, next);
			/* The memory in between is the allocator's, but its contents are unknown.
			 */
			if (heap_skip(g->heap, r.at, next ? next : r.end))
				return -ENOMEM;
			r.at = next ? next : r.end;
		}
		if (r.at > r.end)
			r.at = r.end;
		*own += r.at - start;
		if (r.at > start && heap_own(g->heap, start, r.at, HEAP_ARENA))
			return -ENOMEM;
		if (!next)
			break;
		r.at = next;
	}
	return 0;
}

/* The end of [heap], or of the maps from @addr on; adjacent maps count as one. */
static uint64_t end_of_maps(const struct image *img, uint64_t addr)
{
	const struct image_map *m = image_map_at(img, addr), *last = img->maps.at + img->maps.n;

	if (!m)
		return addr;
	while (m + 1 < last && m[1].start == m->end && m[1].write && !strcmp(m[1].path, m->path))
		m++;
	return m->end;
}

/* Walks regions that came from mmap() because brk() failed: each ends in fenceposts, or in the top.
 */
static int walk_scattered(struct glibc *g, const struct glibc_arena *a, uint64_t *own)
{
	size_t nknown;

	heap_sort_owned(g->heap);
	nknown = g->heap->owned.n;
	vec_for_each (&g->img->maps, m) {
		uint64_t at = m->start, run = at; /* pages are touched up to here */

		while (glibc_anonymous(m) && at + PAGE <= m->end) {
			const struct heap_range *known = heap_owner(g->heap, nknown, at);
			struct region r = {a, at, m->end}, probe = r;
			struct chunk c;
			enum stop why;
			int ret;

			if (known) {
				at = (known->end + PAGE - 1) & ~(PAGE - 1);
				continue;
			}
			if (at >= run) {
				run = image_present(g->img, m, &at);
				if (!run)
					break;
				continue;
			}
			if (!glibc_chunk_at(g, &g->probe, at, &c))
				break;
			why = c.prev_size ? STOP_BROKEN : walk_chunks(g, &probe, false, SIZE_MAX);
			if (why != STOP_TOP && why != STOP_FENCE) {
				at += PAGE;
				continue;
			}
			r.end = probe.at + (why == STOP_FENCE ? 2ull * g->l->header : 0);
			ret = walk_region(g, r, own);
			if (ret)
				return ret;
			at = (r.end + PAGE - 1) & ~(PAGE - 1);
		}
	}
	return 0;
}

static int walk_main(struct glibc *g, const struct glibc_arena *a)
{
	uint64_t own = 0, start = g->par.sbrk_base;
	struct region r = {.arena = a};
	int ret = 0;

	if (heap_own(g->heap, a->addr, a->addr + g->l->arena_size, HEAP_METADATA))
		return -ENOMEM;
	if (!start) {
		vec_for_each (&g->img->maps, m) {
			if (!strcmp(m->path, "[heap]") && !g->par.known)
				start = m->start;
		}
	}
	if (start) {
		r.end = end_of_maps(g->img, start);
		r.at = g->par.known ? align_up(g, start)
				    : find_chain(g, &(struct region){a, start, r.end}, start);
		if (r.at)
			ret = walk_region(g, r, &own);
	}
	if (!ret && (a->flags & NONCONTIGUOUS))
		ret = walk_scattered(g, a, &own);
	/* A foreign sbrk() in between also counts in system_mem. */
	if (!ret && !(a->flags & NONCONTIGUOUS) && start && a->top > start) {
		struct chunk top;

		if (!glibc_chunk_at(g, &g->probe, a->top, &top) ||
		    a->top + size_of(&top) - start != a->system_mem)
			heap_doubt(g->heap, "the main arena's size differs from its counter");
	} else if (!ret && own != a->system_mem) {
		heap_doubt(g->heap, "%llu of the main arena's %llu bytes were found",
			   (unsigned long long)own, (unsigned long long)a->system_mem);
	}
	return ret;
}

/* struct heap_info: arena, previous heap, size, [...] */
static bool heap_info(struct glibc *g, const struct glibc_arena *a, uint64_t inside, uint64_t *heap,
		      uint64_t info[3])
{
	uint8_t raw[3 * sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(g->l->heap_max) / sizeof(g->l->heap_max[0]); i++) {
		uint64_t max = g->l->heap_max[i];

		*heap = inside & ~(max - 1);
		if (!image_read_all(g->img, *heap, raw, 3ull * g->l->word))
			continue;
		for (unsigned int k = 0; k < 3; k++)
			info[k] = glibc_word(g, raw, (uint64_t)k * g->l->word);
		if (info[0] == a->addr && info[2] <= max && info[2] >= PAGE)
			return true;
	}
	return false;
}

/* Walks one heap of an arena other than the main one.  Return: 0 or -ENOMEM. */
static int walk_heap(struct glibc *g, const struct glibc_arena *a, uint64_t heap, uint64_t size)
{
	uint64_t header = a->addr & 0xff; /* of a heap; in the first heap, the arena follows it */
	struct region r = {.arena = a, .end = heap + size};
	uint64_t own = 0;
	int ret;

	r.at = align_up(g, a->addr == heap + header ? a->addr + g->l->arena_size : heap + header);
	ret = walk_region(g, r, &own);
	return ret ? ret : heap_own(g->heap, heap, r.end, HEAP_ARENA);
}

static bool is_walked(const struct glibc *g, uint64_t heap)
{
	vec_for_each (&g->heaps, walked) {
		if (*walked == heap)
			return true;
	}
	return false;
}

/* Walks the heaps of @a, each of which leads to the one before. */
static int walk_other(struct glibc *g, const struct glibc_arena *a)
{
	uint64_t inside, heap, info[3], sum = 0;
	int ret;

	g->heaps.n = 0;
	for (inside = a->top; inside; inside = info[1]) {
		bool found = heap_info(g, a, inside, &heap, info);

		if (!found || is_walked(g, heap)) {
			heap_damage(g->heap, inside, "%s",
				    found ? "an arena's list of heaps is a ring"
					  : "no heap header belongs to this address");
			heap_doubt(g->heap, "the heaps of the arena at %#llx are broken",
				   (unsigned long long)a->addr);
			return 0;
		}
		ret = vec_push(&g->heaps, heap);
		if (!ret)
			ret = walk_heap(g, a, heap, info[2]);
		if (ret)
			return ret;
		sum += info[2];
	}
	if (sum != a->system_mem)
		heap_doubt(g->heap, "the arena at %#llx has %llu bytes, and counts %llu",
			   (unsigned long long)a->addr, (unsigned long long)sum,
			   (unsigned long long)a->system_mem);
	return 0;
}

int glibc_walk_arenas(struct glibc *g)
{
	int ret = 0;

	vec_for_each (&g->arenas, a) {
		g->heap->metadata_bytes += g->l->arena_size;
		if (a->top == a->addr + g->l->top) /* initial_top(): no memory yet */
			ret = heap_own(g->heap, a->addr, a->addr + g->l->arena_size, HEAP_METADATA);
		else
			ret = a->main ? walk_main(g, a) : walk_other(g, a);
		if (ret)
			break;
	}
	g->heap->arenas = (uint32_t)g->arenas.n;
	return ret;
}
