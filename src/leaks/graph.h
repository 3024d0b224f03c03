/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The graph of pointers.  Live blocks are its nodes, numbered in order of address.  Every aligned
 * word of a block that contains an address inside another block is an edge; such words elsewhere
 * are roots.
 *
 * - graph_init(): makes the index of the blocks
 *
 * - roots_scan() (leaks/roots.h): registers, stacks, data of modules, other memory
 *
 * - graph_edges() (leaks/edges.h): one pass over the blocks; the image is not needed afterwards
 *
 * - mark_leaks() (leaks/mark.h): finds the blocks that no root reaches
 *
 * - dominators_find() (leaks/retained/dominators.h): finds which block keeps which
 */
#ifndef LEAKS_GRAPH_H
#define LEAKS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/heap.h"
#include "leaks/index.h"
#include "lib/vec.h"
#include "snapshot/image.h"

enum root_kind {
	ROOT_REGISTER,
	ROOT_STACK,
	ROOT_GLOBAL, /* data of a module */
	ROOT_TLS,    /* thread-local data, or the control block, of an exited thread */
	ROOT_MEMORY, /* a mapping that belongs to no known allocator */
	ROOT_CODE,   /* code made at run time, with addresses in its instructions */
	ROOT_KERNEL, /* epoll data, timers, signal stacks (.tid is their thread) */
};

/* A word outside the heaps that has the address of a block. */
struct root {
	uint64_t addr; /* of the word; 0 for registers */
	uint32_t block;
	pid_t tid; /* for registers, stacks and signal stacks, else 0 */
	enum root_kind kind;
	bool exact; /* the address of the block's start, without tag bits */
};

struct python;

struct graph {
	const struct arch *arch;
	const struct heap_block *block;
	uint32_t n;
	struct index index;
	uint32_t *first; /* edges of block i: to[first[i]] to to[first[i + 1] - 1] */
	VEC(uint32_t) to;
	/* Set it after graph_init(): all roots of a block are wanted, not only the first one found,
	 * and .exact. */
	bool detailed;
	struct python *python; /* leaks/python/python.h; NULL: no Python.  Owned by the graph */
	VEC(uint64_t) exact;   /* bitmap, by edge: as in struct root; edges after its end are not */
	VEC(struct root) roots;
	size_t area;		  /* index of the first root of the area being scanned */
	uint64_t *rooted;	  /* bitmap: the block is in roots; .detailed: since .area */
	uint64_t *rooted_exactly; /* the same with .exact */
	uint64_t root_bytes, block_bytes; /* bytes scanned */
	uint64_t unreadable_bytes;
	uint64_t tagged_words; /* pointers that have tag bits above the address */
};

/* @blocks: sorted; must stay in place.  Return: 0 or -errno. */
int graph_init(struct graph *g, const struct arch *arch, const struct heap_block *blocks, size_t n);
void graph_free(struct graph *g);
/* Frees the edges only. */
void graph_free_edges(struct graph *g);
/* Reads the first bytes of a block, @max at most.  Those that Python's garbage collector changes are
 * 0.  Return: bytes read. */
size_t graph_content(const struct graph *g, uint32_t block, struct image *img, void *to,
		     size_t max);

#endif
