/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/graph_take.h"

#include "leaks/edges.h"

int graph_take(struct graph *g, struct image *img, const struct census *c, bool detailed,
	       struct coverage *cover, struct mp_err *err)
{
	const struct heap_ranges heaps = {c->owned.at, c->owned.n, c->skipped.at, c->skipped.n,
					  c->busy};
	int ret = graph_init(g, img->arch, c->blocks.at, c->blocks.n);

	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the index of %zu blocks",
			       c->blocks.n);
	g->detailed = detailed;
	ret = roots_scan(g, img, &heaps, cover, err);
	return ret ? ret : graph_edges(g, img, err);
}
