/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What each node of a graph retains, found by the definition: a node retains the blocks that cannot
 * be reached without it.  One search for each node, so for some thousand nodes only.
 *
 * The arrays are in mappings, and have numbers of nodes below MAX_NODES, of 32 bits.  So no word of
 * them looks like an address (two numbers next to each other are below 0x4000'0000'0000).
 */
#ifndef VICTIMS_RANDOM_TRUTH_H
#define VICTIMS_RANDOM_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_NODES 16384u
#define NO_NODE	  0x3fffu

/* Zeros that are no part of the heap. */
static inline void *area(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* Nodes are the blocks, then the roots. */
struct truth_graph {
	uint32_t blocks, nodes, edges, max_edges;
	uint32_t *from, *to; /* by edge */
	bool *exact;
	const uint32_t *bytes; /* by block */
	const bool *weak;      /* by node: a stack */
	/* Made by truth_solve(): edges by their first, and by their second node. */
	uint32_t *first, *next, *into_first, *into;
};

enum reached { UNREACHED, LASTING, ONLY_WEAK };
struct truth_answer {
	uint8_t *reached; /* by node: enum reached */
	uint32_t *bytes;  /* by node: retained */
	uint32_t *blocks; /* by node; a block retains itself */
	uint32_t *exact;  /* by node: bytes that hang on exact pointers */
	uint32_t *roots;  /* by node: roots that reach it */
	uint32_t *above;  /* by node: its immediate dominator, NO_NODE if several roots reach it */
	uint32_t unreached, unreached_bytes;
};

static inline void truth_edge(struct truth_graph *g, uint32_t from, uint32_t to, bool exact)
{
	if (g->edges == g->max_edges)
		abort();
	g->from[g->edges] = from;
	g->to[g->edges] = to;
	g->exact[g->edges++] = exact;
}

static inline void truth_new(struct truth_graph *g, uint32_t max_edges)
{
	memset(g, 0, sizeof(*g));
	g->max_edges = max_edges;
	g->from = area(max_edges * sizeof(uint32_t));
	g->to = area(max_edges * sizeof(uint32_t));
	g->exact = area(max_edges);
}

/* Sorts the edges by node[edge].  @first: by node. */
static inline void truth_sort(const struct truth_graph *g, const uint32_t *node, uint32_t *first,
			      uint32_t *sorted)
{
	for (uint32_t e = 0; e < g->edges; e++)
		first[node[e] + 2]++;
	for (uint32_t i = 0; i < g->nodes; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t e = 0; e < g->edges; e++)
		sorted[first[node[e] + 1]++] = e;
}

/* Marks what the roots of a kind reach without node @without. */
static inline void truth_reach(const struct truth_graph *g, bool weak, uint32_t only,
			       uint32_t without, const uint8_t *ignore, bool *seen, uint32_t *queue)
{
	uint32_t n = 0;

	memset(seen, 0, g->nodes);
	for (uint32_t r = g->blocks; r < g->nodes; r++) {
		if (g->weak[r] == weak && r != without && (only == NO_NODE || only == r)) {
			seen[r] = true;
			queue[n++] = r;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = g->first[queue[i]]; k < g->first[queue[i] + 1]; k++) {
			uint32_t to = g->to[g->next[k]];

			/* Weak roots keep only what the others do not reach. */
			if (seen[to] || to == without || (weak && ignore[to] == LASTING))
				continue;
			seen[to] = true;
			queue[n++] = to;
		}
	}
}

static inline void truth_retained(const struct truth_graph *g, struct truth_answer *a, bool *seen,
				  uint32_t *queue, uint32_t *least)
{
	for (uint32_t v = 0; v < g->nodes; v++) {
		if (a->reached[v] == UNREACHED)
			continue;
		truth_reach(g, a->reached[v] == ONLY_WEAK, NO_NODE, v, a->reached, seen, queue);
		for (uint32_t b = 0; b < g->blocks; b++) {
			if (a->reached[b] != a->reached[v] || seen[b])
				continue;
			a->bytes[v] += g->bytes[b];
			a->blocks[v]++;
		}
		/* The dominators of a block retain sets of which each contains the next. */
		for (uint32_t b = 0; b < g->blocks; b++) {
			uint32_t size = a->blocks[v] + (v >= g->blocks);

			if (a->reached[b] != a->reached[v] || seen[b] || b == v || size >= least[b])
				continue;
			least[b] = size;
			a->above[b] = v;
		}
	}
}

/* Is @v @top, or does @top retain it? */
static inline bool truth_below(const struct truth_answer *a, uint32_t v, uint32_t top)
{
	while (v != top && v != NO_NODE)
		v = a->above[v];
	return v == top;
}

/* Adds what hangs on exact pointers.  In order of what is retained: children before parents. */
static inline void truth_exact(const struct truth_graph *g, struct truth_answer *a)
{
	for (uint32_t size = 1; size <= g->blocks; size++) {
		for (uint32_t v = 0; v < g->blocks; v++) {
			bool hangs = false;

			if (a->reached[v] == UNREACHED || a->blocks[v] != size)
				continue;
			a->exact[v] += g->bytes[v];
			for (uint32_t k = g->into_first[v]; k < g->into_first[v + 1] && !hangs;
			     k++) {
				uint32_t e = g->into[k], from = g->from[e];

				hangs = g->exact[e] && a->reached[from] == a->reached[v] &&
					!truth_below(a, from, v);
			}
			if (hangs && a->above[v] != NO_NODE)
				a->exact[a->above[v]] += a->exact[v];
		}
	}
}

/* Adds to @wrong[v] the bytes that node v retains in @seen but not in @known, of the same graph. */
static inline void truth_compare(const struct truth_graph *g, const struct truth_answer *seen,
				 const struct truth_answer *known, uint32_t *wrong)
{
	for (uint32_t b = 0; b < g->blocks; b++) {
		for (uint32_t v = b; v != NO_NODE && seen->reached[b] != UNREACHED;
		     v = seen->above[v]) {
			if (known->reached[b] == UNREACHED || !truth_below(known, b, v))
				wrong[v] += g->bytes[b];
		}
	}
}

static inline void truth_solve(struct truth_graph *g, struct truth_answer *a)
{
	const size_t words = (g->nodes + 2) * sizeof(uint32_t);
	uint32_t *queue = area(words), *least = area(words);
	bool *seen = area(g->nodes);

	g->first = area(words);
	g->into_first = area(words);
	g->next = area((g->edges + 1) * sizeof(uint32_t));
	g->into = area((g->edges + 1) * sizeof(uint32_t));
	truth_sort(g, g->from, g->first, g->next);
	truth_sort(g, g->to, g->into_first, g->into);
	memset(a, 0, sizeof(*a));
	a->reached = area(g->nodes);
	a->bytes = area(words);
	a->blocks = area(words);
	a->exact = area(words);
	a->roots = area(words);
	a->above = area(words);
	for (uint32_t v = 0; v < g->nodes; v++) {
		a->above[v] = NO_NODE;
		least[v] = UINT32_MAX >> 2;
	}
	for (int weak = 0; weak < 2; weak++) {
		truth_reach(g, weak, NO_NODE, NO_NODE, a->reached, seen, queue);
		for (uint32_t v = 0; v < g->nodes; v++) {
			if (seen[v])
				a->reached[v] = weak ? ONLY_WEAK : LASTING;
		}
	}
	for (uint32_t r = g->blocks; r < g->nodes; r++) {
		truth_reach(g, g->weak[r], r, NO_NODE, a->reached, seen, queue);
		for (uint32_t b = 0; b < g->blocks; b++)
			a->roots[b] += seen[b];
	}
	for (uint32_t b = 0; b < g->blocks; b++) {
		a->unreached += a->reached[b] == UNREACHED;
		a->unreached_bytes += a->reached[b] == UNREACHED ? g->bytes[b] : 0;
	}
	truth_retained(g, a, seen, queue, least);
	truth_exact(g, a);
}

#endif
