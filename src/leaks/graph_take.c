/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/graph_take.h"

#include <errno.h>
#include "leaks/edges.h"
#include "leaks/python/python.h"
#include "lib/by_number.h"

typedef VEC(struct heap_range) ranges;

/* The heads of the lists of Python's collector are in static data, and are no roots. */
static int add_collectors(ranges *all, const struct census *c, const struct python *p)
{
	vec_for_each (&c->owned, r) {
		if (vec_push(all, *r))
			return -ENOMEM;
	}
	vec_for_each (&p->types.collectors, r) {
		if (vec_push(all, *r))
			return -ENOMEM;
	}
	vec_sort(all, by_number);
	return 0;
}

static int scan_memory(struct graph *g, struct image *img, const struct census *c,
		       struct coverage *cover, struct mp_err *err)
{
	struct heap_ranges heaps = {c->owned.at, c->owned.n, c->skipped.at, c->skipped.n, c->busy};
	ranges all = {0};
	int ret = python_take(&g->python, img, c, &g->index);

	if (!ret && g->python)
		ret = add_collectors(&all, c, g->python);
	if (ret) {
		vec_free(&all);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for Python's types");
	}
	if (g->python) {
		heaps.owned = all.at;
		heaps.nowned = all.n;
	}
	ret = roots_scan(g, img, &heaps, cover, err);
	vec_free(&all);
	return ret ? ret : graph_edges(g, img, err);
}

int graph_take(struct graph *g, struct image *img, const struct census *c, bool detailed,
	       struct coverage *cover, struct mp_err *err)
{
	int ret = graph_init(g, img->arch, c->blocks.at, c->blocks.n);

	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the index of %zu blocks",
			       c->blocks.n);
	g->detailed = detailed;
	return scan_memory(g, img, c, cover, err);
}
