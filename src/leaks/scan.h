/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds addresses of blocks among words: those in blocks become edges of the graph, others roots. */
#ifndef LEAKS_SCAN_H
#define LEAKS_SCAN_H

#include <stdbool.h>
#include "leaks/graph.h"

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
/* Scans a single value, one that is not in memory or not stored literally.  @from: as above. */
void scan_value(struct scan *s, uint64_t value, uint64_t addr, uint32_t from);
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
/* The same, once the last block before number @end was scanned; whether it failed is in .failed. */
void scan_end(struct scan *s, uint32_t end);

#endif
