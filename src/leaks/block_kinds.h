/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which blocks are of the same kind: the same class; or without a class, the same size, and both
 * text or both not. */
#ifndef LEAKS_BLOCK_KINDS_H
#define LEAKS_BLOCK_KINDS_H

#include "leaks/graph.h"
#include "leaks/types.h"

struct block_kinds {
	struct image *img;
	struct types *types;
	const struct heap_block *block;
	uint16_t *label; /* by block */
};

#define BLOCK_KINDS_NONE UINT64_MAX /* the key of no block */

/* Reads the first word of every block of @g.  Return: 0 or -ENOMEM. */
int block_kinds_take(struct block_kinds *k, const struct graph *g, struct image *img);
void block_kinds_free(struct block_kinds *k);
/* Return: a number that blocks of one kind have in common. */
uint64_t block_kinds_key(const struct block_kinds *k, uint32_t block);
/* Fetches what block_kinds_key() will need. */
static inline void block_kinds_fetch(const struct block_kinds *k, uint32_t block)
{
	__builtin_prefetch(&k->label[block]);
	__builtin_prefetch(&k->block[block]);
}
/* Reads a block and guesses its type (types.h). */
void block_kinds_type(const struct block_kinds *k, const struct heap_block *b, struct type *out);

#endif
