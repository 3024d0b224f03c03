/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who points to whom: live blocks are nodes, numbered in order of address; every aligned word of a
 * block that holds an address inside another block is an edge; words elsewhere are roots.
 *
 *	graph_init()	index of the blocks
 *	roots_scan()	registers, stacks, data of modules, other memory
 *	graph_edges()	one pass over the blocks; the image is not needed afterwards
 *	mark_leaks()	what no root reaches
 */
#ifndef LEAKS_GRAPH_H
#define LEAKS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include "leaks/image.h"
#include "leaks/index.h"
#include "leaks/walker.h"
#include "lib/err.h"
#include "lib/vec.h"

enum root_kind {
	ROOT_REGISTER,
	ROOT_STACK,
	ROOT_GLOBAL, /* data of a module */
	ROOT_TLS,    /* thread-local or thread control data of an exited thread */
	ROOT_MEMORY, /* a mapping that belongs to no known allocator */
	ROOT_CODE, /* code that the program made at run time, which has addresses in instructions */
	ROOT_KERNEL, /* epoll data, timers */
};

/* The first root that was found for a block. */
struct root {
	uint64_t addr; /* of the word; of registers: 0 */
	uint32_t block;
	pid_t tid; /* of registers and stacks, else 0 */
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
	uint64_t *rooted;		  /* bitmap: in roots */
	uint64_t root_bytes, block_bytes; /* looked at */
	uint64_t unreadable_bytes;
	uint64_t tagged_words; /* pointers with bits of their own above the address */
};

/* @blocks: sorted, stay where they are.  Return: 0 or -errno. */
int graph_init(struct graph *g, const struct arch *arch, const struct heap_block *blocks, size_t n);
void graph_free(struct graph *g);
/* Return: 0 or -errno with @err. */
int graph_edges(struct graph *g, struct image *img, struct mp_err *err);

/* Words that may be addresses, some hundred in flight so that their cache misses overlap. */
struct scan_pending {
	uint64_t value, at;
	const struct index_record *record;
	uint32_t from; /* block, or INDEX_NONE: a root */
	bool tagged;   /* there are other bits above the address */
};
#define SCAN_QUEUE 256
struct scan {
	struct graph *graph;
	struct scan_pending queue[SCAN_QUEUE];
	uint32_t head, count;
	uint32_t done;	  /* blocks below this one have .first set */
	struct root root; /* kind and thread of the roots to come */
	bool failed;	  /* no memory */
};
/* Looks at @n words of the architecture's size that are at @addr of the process; @words is aligned
 * to them.  @from: the block, or INDEX_NONE. */
void scan_words(struct scan *s, const void *words, size_t n, uint64_t addr, uint32_t from);
/* The same for one that is not in memory, or not as it is meant; a root. */
void scan_value(struct scan *s, uint64_t value, uint64_t addr);
/* Looks at eight bytes at each of @n places from @bytes, which are at @addr of the process; roots.
 */
void scan_unaligned(struct scan *s, const uint8_t *bytes, size_t n, uint64_t addr);
/* Handles what is still queued.  Return: 0 or -ENOMEM. */
int scan_flush(struct scan *s);

/* What the roots were, for the report. */
struct coverage {
	uint64_t dead_stacks;	 /* cached stacks of exited threads, not scanned */
	uint64_t unfrozen_bytes; /* not in the copy: read from the running process */
	uint64_t skipped_bytes;	 /* memprof's own */
	uint32_t kernel_words;	 /* from epoll and timers */
};
/* Of all heaps: owned ones, sorted, are never roots, but for what was skipped in them. */
struct heap_ranges {
	const struct heap_range *owned;
	size_t nowned;
	const struct heap_range *skipped;
	size_t nskipped;
	bool busy; /* a thread was in an allocator, with a lock */
};

/* Return: 0 or -errno with @err. */
int roots_scan(struct graph *g, struct image *img, const struct heap_ranges *heaps,
	       struct coverage *c, struct mp_err *err);

/* Where and when a block was allocated, as a recording tells it. */
struct leak_source {
	bool known;	 /* false: it does not tell */
	bool older;	 /* it is at least of that age */
	uint32_t stack;	 /* the recording's number; 0: it has none */
	uint32_t tid;	 /* of the thread */
	uint64_t age_ns; /* at the snapshot */
};

/* One leaked block that no other leaked block (or only its own cycle) points to. */
struct leak {
	uint32_t block;
	uint32_t cluster; /* clusters_make(): the cluster's number */
	bool cycle;
	uint32_t indirect_count; /* blocks that only it keeps, itself not counted */
	uint64_t indirect_bytes;
};
struct leaks {
	VEC(struct leak) direct;
	uint32_t *owner; /* by block: 1 + its place in .direct; 0: reached */
	uint32_t total_count;
	uint64_t total_bytes;
};
/* Return: 0 or -ENOMEM. */
int mark_leaks(const struct graph *g, struct leaks *l);
/* Drops those direct leaks i whose @keep[i] is 0, with what they hold.  @keep is changed. */
void leaks_keep(struct leaks *l, const struct graph *g, uint32_t *keep);
void leaks_free(struct leaks *l);

/* Shortest way from a root (of globals, if there is one) to @block: @path gets block numbers, the
 * root's first. Return: 0 with *@root and *@n, -ENOENT: no root reaches it, -ENOMEM. */
struct path {
	struct root root;
	VEC(uint32_t) blocks;
};
int mark_path(const struct graph *g, uint32_t block, struct path *path);
/* Bytes and blocks that would be unreachable without @block (it included). */
int mark_retained(const struct graph *g, uint32_t block, uint32_t *count, uint64_t *bytes);

#endif
