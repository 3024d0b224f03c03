/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Explains why a block is alive: a path from a root, the blocks that point to it, and what it
 * keeps. */
#ifndef LEAKS_WHY_H
#define LEAKS_WHY_H

#include "leaks/graph.h"
#include "leaks/leak_source.h"
#include "leaks/types/types.h"

#define WHY_POINTERS 8

struct why_block {
	uint64_t addr, size;
	char type[96];
};
struct why {
	uint64_t asked;		/* the address in question */
	struct why_block block; /* the block that contains it; size 0: none */
	bool reached;		/* false: it is leaked */
	bool python;		/* not reached, but Python's collector might free it */
	struct root root;
	char root_name[512]; /* "global cache, declared at app.c:12, at 0x55...", as in holders.h */
	VEC(struct why_block) path;		/* from the root's block to the block */
	struct why_block pointer[WHY_POINTERS]; /* blocks that point to the block */
	uint64_t pointers;			/* number of all blocks that do */
	uint32_t retained_count; /* would be unreachable without the block, itself included */
	uint64_t retained_bytes;
	struct leak_source source; /* filled by the caller that has a recording */
};

/* Fills @w for the block that contains @addr.  Return: 0 or -ENOMEM. */
int why_explain(struct why *w, const struct graph *g, struct image *img, uint64_t addr);
void why_free(struct why *w);

#endif
