/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Heap walker for glibc malloc, 2.28 to 2.41, without symbols, dynamic or static. */
#include <errno.h>
#include <stdio.h>
#include "heaps/glibc/glibc.h"
#include "heaps/walker.h"

#define FIRST_MINOR 28
#define LAST_MINOR  41

static bool thread_is_inside(struct glibc *g)
{
	vec_for_each (&g->arenas, a) {
		if (a->mutex)
			return true;
	}
	vec_for_each (&g->img->threads, th) {
		if (glibc_thread_inside(g, th))
			return true;
	}
	return false;
}

static int walk_glibc(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct glibc g = {.img = img, .heap = heap};
	int ret;

	g.l = glibc_layout(img->arch);
	if (!g.l)
		return -ENOENT;
	heap->allocator = "glibc malloc";
	heap->exact = true;
	ret = glibc_find(&g);
	if (!ret && g.minor) {
		snprintf(heap->version, sizeof(heap->version), "2.%d", g.minor);
		if (g.minor < FIRST_MINOR || g.minor > LAST_MINOR)
			heap_doubt(heap,
				   "glibc 2.%d is not among the versions known (2.%d to 2.%d)",
				   g.minor, FIRST_MINOR, LAST_MINOR);
	}
	if (!ret && !g.par.known)
		heap_doubt(heap, "the allocator's counters were not found");
	heap->checksum_known = g.par.known;
	heap->busy = thread_is_inside(&g);
	if (heap->busy)
		heap_was_changing(heap);
	if (!ret)
		ret = glibc_walk_arenas(&g);
	if (!ret)
		ret = glibc_walk_mmapped(&g);
	heap_finish(heap);
	if (!ret)
		ret = glibc_take_cached(&g);
	heap_finish(heap);
	if (!ret && !heap->blocks.n)
		ret = -ENOENT;
	heap->passing |= !heap->exact && heap->changing;
	image_view_free(&g.view);
	image_view_free(&g.probe);
	vec_free(&g.arenas);
	vec_free(&g.heaps);
	vec_free(&g.cached);
	if (ret == -ENOMEM)
		mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the list of blocks");
	return ret;
}

const struct walker walker_glibc = {.name = "glibc malloc", .walk = walk_glibc};
