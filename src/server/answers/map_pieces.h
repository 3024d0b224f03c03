/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The mapped parts of an address space, each with the map that it belongs to. */
#ifndef SERVER_ANSWERS_MAP_PIECES_H
#define SERVER_ANSWERS_MAP_PIECES_H

#include <stdint.h>
#include "lib/vec.h"

struct map_piece {
	uint64_t start, end;
	uint32_t map;
};

/* Sorted by address; they do not overlap.  Zero-initialize; to be freed by vec_free(&p->at). */
struct map_pieces {
	VEC(struct map_piece) at;
};

/* Return: the index of the first piece that ends after @address; the number of pieces if there is
 * none. */
size_t pieces_from(const struct map_pieces *p, uint64_t address);

/* Adds a piece where there is none.  Return: 0 or -ENOMEM. */
int pieces_add(struct map_pieces *p, const struct map_piece *piece);

/**
 * pieces_cut() - remove what is from @start to @end
 * @cut: called with the map of each piece that became shorter, was divided, or was removed
 *
 * Return: 0 or -ENOMEM.
 */
int pieces_cut(struct map_pieces *p, uint64_t start, uint64_t end,
	       void (*cut)(void *ctx, uint32_t map, int pieces), void *ctx);

#endif
