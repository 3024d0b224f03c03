/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes the graph of a whole image: index, roots, and edges. */
#ifndef LEAKS_GRAPH_TAKE_H
#define LEAKS_GRAPH_TAKE_H

#include "heaps/census.h"
#include "leaks/graph.h"
#include "leaks/roots.h"

/**
 * graph_take() - find which block has the address of which
 * @g: filled; call graph_free() in any case
 * @c: census of @img; its blocks must stay in place
 * @detailed: see struct graph
 * Return: 0 or -errno with @err.
 */
int graph_take(struct graph *g, struct image *img, const struct census *c, bool detailed,
	       struct coverage *cover, struct mp_err *err);

#endif
