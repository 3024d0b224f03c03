/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds addresses of blocks in memory: in blocks, which gives the edges, and for leaks/roots.c
 * elsewhere. */
#ifndef LEAKS_EDGES_H
#define LEAKS_EDGES_H

#include <stdbool.h>
#include "leaks/graph.h"
#include "lib/err.h"

/* A word that might be an address.  SCAN_QUEUE of them are in flight, so that their cache misses
 * overlap. */
struct scan_pending {
	uint64_t value, at;
	const struct index_record *record;
	uint32_t from; /* the block that has the word; INDEX_NONE: a root */
	bool tagged;   /* other bits are set above the address */
};
#define SCAN_QUEUE 256
struct scan {
	struct graph *graph;
	struct scan_pending queue[SCAN_QUEUE];
	uint32_t head, count;
	uint32_t done;	  /* .first is set for blocks below this one */
	struct root root; /* kind and thread of the next roots: scan_begin() */
	bool failed;	  /* out of memory */
};
/* Scans @n words of the architecture's size, read from @addr of the process; @words is aligned.
 * @from: the block, or INDEX_NONE for roots. */
void scan_words(struct scan *s, const void *words, size_t n, uint64_t addr, uint32_t from);
/* Scans a single value as a root, for values that are not in memory or not stored literally. */
void scan_value(struct scan *s, uint64_t value, uint64_t addr);
/* Scans the eight bytes at each of @n consecutive offsets of @bytes, which were read from @addr of
 * the process, as roots. */
void scan_unaligned(struct scan *s, const uint8_t *bytes, size_t n, uint64_t addr);
/* Handles the words that are still queued, and begins an area: the roots that follow have the kind
 * and thread of @root.  With .detailed, each block gets at most one root that is exact, and one
 * before it that is not, in an area that is a mapping or code, so that a large mapping does not
 * need much more memory than the list of blocks. */
void scan_begin(struct scan *s, struct root root);
/* Handles the words that are still queued.  Return: 0 or -ENOMEM. */
int scan_flush(struct scan *s);

/* Scans all blocks for edges, in one pass in order of address.  Return: 0 or -errno with @err. */
int graph_edges(struct graph *g, struct image *img, struct mp_err *err);

#endif
