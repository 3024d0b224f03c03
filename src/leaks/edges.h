/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The edges of the graph: the addresses of blocks that are in blocks. */
#ifndef LEAKS_EDGES_H
#define LEAKS_EDGES_H

#include "leaks/graph.h"
#include "lib/err.h"

/* Scans all blocks for edges, in one pass in order of address.  Return: 0 or -errno with @err. */
int graph_edges(struct graph *g, struct image *img, struct mp_err *err);

#endif
