/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The graph of pointers.  Live blocks are its nodes, numbered in order of address.  Every aligned
 * word of a block that contains an address inside another block is an edge; such words elsewhere
 * are roots.
 *
 * - graph_init(): makes the index of the blocks
 *
 * - roots_scan(): registers, stacks, data of modules, other memory
 *
 * - graph_edges(): one pass over the blocks; the image is not needed afterwards
 *
 * - mark_leaks(): finds the blocks that no root reaches
 */
#ifndef LEAKS_GRAPH_H
#define LEAKS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/heap.h"
#include "leaks/index.h"
#include "lib/err.h"
#include "lib/vec.h"
#include "snapshot/image.h"

enum root_kind {
	ROOT_REGISTER,
	ROOT_STACK,
	ROOT_GLOBAL, /* data of a module */
	ROOT_TLS,    /* thread-local data, or the control block, of an exited thread */
	ROOT_MEMORY, /* a mapping that belongs to no known allocator */
	ROOT_CODE,   /* code made at run time, with addresses in its instructions */
	ROOT_KERNEL, /* epoll data, timers */
};

/* The first root found for a block. */
struct root {
	uint64_t addr; /* of the word; 0 for registers */
	uint32_t block;
	pid_t tid; /* for registers and stacks, else 0 */
	enum root_kind kind;
};

struct graph {
	const struct arch *arch;
	const struct heap_block *block;
	uint32_t n;
	struct index index;
	uint32_t *first; /* edges of block i: to[first[i]] to to[first[i + 1] - 1] */
	VEC(uint32_t) to;
	VEC(struct root) roots;
	uint64_t *rooted;		  /* bitmap: the block is in roots */
	uint64_t root_bytes, block_bytes; /* bytes scanned */
	uint64_t unreadable_bytes;
	uint64_t tagged_words; /* pointers that have tag bits above the address */
};

/* @blocks: sorted; must stay in place.  Return: 0 or -errno. */
int graph_init(struct graph *g, const struct arch *arch, const struct heap_block *blocks, size_t n);
void graph_free(struct graph *g);
/* Scans all blocks for edges.  Return: 0 or -errno with @err. */
int graph_edges(struct graph *g, struct image *img, struct mp_err *err);

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
	struct root root; /* kind and thread of the next roots */
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
/* Handles the words that are still queued.  Return: 0 or -ENOMEM. */
int scan_flush(struct scan *s);

/* What the roots were, for the report. */
struct coverage {
	uint64_t dead_stacks;	 /* cached stacks of exited threads, not scanned */
	uint64_t unfrozen_bytes; /* not in the copy: read from the running process */
	uint64_t skipped_bytes;	 /* memprof's own mappings */
	uint32_t kernel_words;	 /* from epoll and timers */
};
/* The ranges of all heaps.  Owned ranges (sorted) are not roots, except for the skipped parts in
 * them. */
struct heap_ranges {
	const struct heap_range *owned;
	size_t nowned;
	const struct heap_range *skipped;
	size_t nskipped;
	bool busy; /* a thread holds a lock of an allocator */
};

/* Scans all roots.  Return: 0 or -errno with @err. */
int roots_scan(struct graph *g, struct image *img, const struct heap_ranges *heaps,
	       struct coverage *c, struct mp_err *err);

/* Where and when a block was allocated, according to a recording. */
struct leak_source {
	bool known;	 /* false: the recording does not have the block */
	bool older;	 /* age_ns is a lower bound */
	uint32_t stack;	 /* stack id in the recording; 0: none */
	uint32_t tid;	 /* of the thread */
	uint64_t age_ns; /* at the snapshot */
};

/* A leaked block to which no other leaked block points, or only those of its own cycle. */
struct leak {
	uint32_t block;
	uint32_t cluster; /* clusters_make(): the cluster's number */
	bool cycle;
	uint32_t indirect_count; /* blocks that only it keeps, without itself */
	uint64_t indirect_bytes;
};
struct leaks {
	VEC(struct leak) direct;
	uint32_t *owner; /* by block: 1 + index in .direct; 0: reached */
	uint32_t total_count;
	uint64_t total_bytes;
};
/* Finds the blocks that no root reaches.  Return: 0 or -ENOMEM. */
int mark_leaks(const struct graph *g, struct leaks *l);
/* Drops the direct leaks i with @keep[i] == 0, and the blocks that they own.  @keep is overwritten.
 */
void leaks_keep(struct leaks *l, const struct graph *g, uint32_t *keep);
void leaks_free(struct leaks *l);

/* Finds the shortest way to @block from a root, from a global one if possible.  @path gets the root
 * and the block numbers, the root's block first.  Return: 0; -ENOENT: no root reaches the block;
 * -ENOMEM. */
struct path {
	struct root root;
	VEC(uint32_t) blocks;
};
int mark_path(const struct graph *g, uint32_t block, struct path *path);
/* Counts the blocks and bytes that would be unreachable without @block, itself included.  Return: 0
 * or -ENOMEM. */
int mark_retained(const struct graph *g, uint32_t block, uint32_t *count, uint64_t *bytes);

#endif
