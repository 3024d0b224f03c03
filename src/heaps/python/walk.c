/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for pymalloc of CPython 3.9 to 3.13.  All blocks of a pool have the same size.  Those
 * that were ever used, except for the pool's free list, are live.  The list is exact only if each
 * pool's count of blocks, each arena's count of free pools, and the list of unused arenas agree with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/free_list.h"
#include "heaps/python/python.h"
#include "heaps/scan.h"
#include "heaps/walker.h"
#include "lib/human.h"

#define OVERHEAD  sizeof(struct py_pool)
#define ALIGNMENT 16u
#define CLASSES	  32u /* blocks of 16 to 512 bytes */

struct py_walk {
	struct image *img;
	struct heap *heap;
	struct py_heap py;
	struct image_view view;
	uint8_t *is_free;  /* by block of a pool */
	uint64_t bad_pool; /* the last one found; 0: none */
	const char *bad_what;
};

/* The one thread that has the interpreter's lock can be changing a pool; more of them are damaged. */
static void bad_pool(struct py_walk *w, uint64_t pool, const char *what)
{
	heap_doubt_now(w->heap, "pool 0x%" PRIx64 ": %s", pool, what);
	if (w->bad_pool)
		heap_damage(w->heap, w->bad_pool, "pool: %s", w->bad_what);
	w->bad_pool = pool;
	w->bad_what = what;
}

static void end_bad_pools(struct py_walk *w)
{
	if (w->heap->damaged.n)
		heap_damage(w->heap, w->bad_pool, "pool: %s", w->bad_what);
}

static int take_blocks(struct py_walk *w, const struct free_list_area *a)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < a->capacity; i++) {
		if (a->is_free[i])
			w->heap->free_bytes += a->size;
		else
			ret = heap_add(w->heap, a->base + i * a->size, a->size);
	}
	return ret;
}

static int take_pool(struct py_walk *w, uint64_t addr, const struct py_pool *p)
{
	struct free_list_area area = {.base = addr + OVERHEAD, .is_free = w->is_free};
	uint64_t room = w->py.pool_size - OVERHEAD;
	uint32_t free;

	if (p->szidx >= CLASSES) {
		bad_pool(w, addr, "its blocks have no size");
		return heap_skip(w->heap, addr, addr + w->py.pool_size);
	}
	area.size = (p->szidx + 1ull) * ALIGNMENT;
	if (p->nextoffset < OVERHEAD || (p->nextoffset - OVERHEAD) % area.size ||
	    p->nextoffset - OVERHEAD > room || p->maxnextoffset != w->py.pool_size - area.size) {
		bad_pool(w, addr, "its blocks do not fit");
		return heap_skip(w->heap, addr, addr + w->py.pool_size);
	}
	area.capacity = (uint32_t)((p->nextoffset - OVERHEAD) / area.size);
	memset(w->is_free, 0, area.capacity);
	free = free_list_mark(w->img, &w->view, &area, p->freeblock);
	if (free == FREE_LIST_BROKEN) {
		bad_pool(w, addr, "its free list is broken");
		return heap_skip(w->heap, addr, addr + w->py.pool_size);
	}
	if (p->count + free != area.capacity)
		heap_doubt_now(w->heap,
			       "pool 0x%" PRIx64 ": %u block%s in use, its counter says %u", addr,
			       area.capacity - free, plural(area.capacity - free), p->count);
	w->heap->metadata_bytes += OVERHEAD;
	w->heap->free_bytes += room - area.capacity * area.size;
	return take_blocks(w, &area);
}

static int take_arena(struct py_walk *w, uint32_t number, const struct py_arena *a)
{
	const uint64_t first = python_first_pool(&w->py, a->address),
		       end = a->address + w->py.arena_size,
		       last = first + a->ntotalpools * w->py.pool_size;
	uint64_t free = (last - a->pool_address) / w->py.pool_size;
	int ret = heap_own(w->heap, a->address, end, HEAP_ARENA);

	w->heap->free_bytes += last - a->pool_address;
	w->heap->metadata_bytes += w->py.arena_size - (last - first);
	for (uint64_t at = first; at < a->pool_address && !ret; at += w->py.pool_size) {
		const void *p = image_view(w->img, &w->view, at, sizeof(struct py_pool));
		struct py_pool pool;

		if (!p) {
			bad_pool(w, at, "it cannot be read");
			ret = heap_skip(w->heap, at, at + w->py.pool_size);
			continue;
		}
		memcpy(&pool, p, sizeof(pool));
		if (pool.arenaindex != number) {
			bad_pool(w, at, "it is of another arena");
			ret = heap_skip(w->heap, at, at + w->py.pool_size);
		} else if (!pool.count) {
			free++;
			w->heap->free_bytes += w->py.pool_size;
		} else {
			ret = take_pool(w, at, &pool);
		}
	}
	if (!ret && free != a->nfreepools)
		heap_doubt_now(w->heap,
			       "arena 0x%" PRIx64 ": %" PRIu64 " pool%s free, its counter says %u",
			       a->address, free, plural(free), a->nfreepools);
	return ret;
}

static int by_arena(const void *a, const void *b)
{
	const struct py_arena *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Reads the arena objects.  Their number goes to .prevarena, which is not needed. */
static int read_arenas(struct py_walk *w, struct py_arena **list, uint32_t *n)
{
	struct py_arena *all = calloc(w->py.allocated + 1ul, sizeof(*all));

	*list = all;
	*n = 0;
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->py.max && *n < w->py.allocated; i++) {
		const void *p =
		    image_view(w->img, &w->view, w->py.array + sizeof(*all) * i, sizeof(*all));

		if (!p)
			break;
		memcpy(&all[*n], p, sizeof(*all));
		if (!all[*n].address || !python_arena_valid(w->img, &w->py, &all[*n]))
			continue;
		all[*n].prevarena = i;
		++*n;
	}
	qsort(all, *n, sizeof(*all), by_arena);
	return 0;
}

static int walk_arenas(struct py_walk *w)
{
	struct py_arena *a;
	uint32_t n, taken = 0;
	uint64_t end = 0;
	int ret = read_arenas(w, &a, &n);

	for (uint32_t i = 0; i < n && !ret; i++) {
		if (a[i].address < end)
			continue; /* damaged: they overlap */
		end = a[i].address + w->py.arena_size;
		taken++;
		ret = take_arena(w, (uint32_t)a[i].prevarena, &a[i]);
	}
	free(a);
	w->heap->arenas = taken;
	if (taken != w->py.allocated)
		heap_doubt(w->heap, "arenas overlap, or changed while they were read");
	return ret;
}

static int walk_found(struct py_walk *w)
{
	int ret;

	w->is_free = calloc(w->py.pool_size / ALIGNMENT, 1);
	ret = w->is_free ? walk_arenas(w) : -ENOMEM;
	end_bad_pools(w);
	w->heap->checksum_known = true;
	w->heap->exact = !w->heap->doubt[0];
	free(w->is_free);
	image_view_free(&w->view);
	return ret;
}

#define VERSION "of Python 3.%u"

uint32_t python_minor(const struct heap *h)
{
	uint32_t minor;

	return h->allocator && !strcmp(h->allocator, walker_python.name) &&
		       sscanf(h->version, VERSION, &minor) == 1
		   ? minor
		   : 0;
}

static int walk_python(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct py_walk w = {.img = img, .heap = heap};
	int ret = python_find(img, &w.py);

	if (ret == -ENOENT)
		return ret;
	heap->allocator = walker_python.name;
	if (ret == -ENOTSUP)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "the process has the allocator of %sPython 3.%u, whose layout "
			       "memprof does not know",
			       w.py.free_threaded ? "free-threaded " : "", w.py.minor);
	if (!ret)
		ret = walk_found(&w);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	snprintf(heap->version, sizeof(heap->version), VERSION, w.py.minor);
	heap_finish(heap);
	return 0;
}

const struct walker walker_python = {
    .name = "pymalloc",
    .machines = "x86_64",
    .library = "python3.",
    .walk = walk_python,
};
