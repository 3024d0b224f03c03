/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The blocks that no root reaches, and which of them keep which. */
#ifndef LEAKS_MARK_H
#define LEAKS_MARK_H

#include <stdbool.h>
#include "leaks/graph.h"

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
	/* python_garbage(): blocks that are no leaks, since Python's collector will free them. */
	uint32_t garbage_count;
	uint64_t garbage_bytes;
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
