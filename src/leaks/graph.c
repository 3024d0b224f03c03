/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/python/python.h"
#include "lib/bitmap.h"
#include "lib/huge.h"

int graph_init(struct graph *g, const struct arch *arch, const struct heap_block *blocks, size_t n)
{
	int ret;

	memset(g, 0, sizeof(*g));
	ret = index_build(&g->index, blocks, n, arch->address_bits);
	if (ret)
		return ret;
	g->arch = arch;
	g->block = blocks;
	g->n = (uint32_t)n;
	g->first = huge_pages(calloc(n + 1, sizeof(*g->first)), (n + 1) * sizeof(*g->first));
	g->rooted = bitmap_new(n);
	g->rooted_exactly = bitmap_new(n);
	return g->first && g->rooted && g->rooted_exactly ? 0 : -ENOMEM;
}

void graph_free_edges(struct graph *g)
{
	free(g->first);
	g->first = NULL;
	vec_free(&g->to);
	vec_free(&g->exact);
}

void graph_free(struct graph *g)
{
	index_free(&g->index);
	graph_free_edges(g);
	free(g->rooted);
	free(g->rooted_exactly);
	vec_free(&g->roots);
	python_free(g->python);
	memset(g, 0, sizeof(*g));
}

size_t graph_content(const struct graph *g, uint32_t block, struct image *img, void *to, size_t max)
{
	const struct heap_block *b = &g->block[block];
	size_t got = image_read(img, b->addr, to, b->size < max ? (size_t)b->size : max);
	struct heap_range hidden[PYTHON_HIDDEN];
	unsigned int n = g->python ? python_hidden(g->python, block, hidden) : 0;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t from = hidden[i].start - b->addr, end = hidden[i].end - b->addr;

		if (from < got)
			memset((uint8_t *)to + from, 0, (size_t)((end < got ? end : got) - from));
	}
	return got;
}
