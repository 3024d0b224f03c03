/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the block that contains an address.  There is a record for each KiB of heap: in which of
 * its 16-byte granules a block starts, which granules are covered by a block, and how many blocks
 * start before it.  A lookup costs one cache miss and does not read the list of blocks.
 */
#ifndef LEAKS_INDEX_H
#define LEAKS_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include "heaps/heap.h"

#define INDEX_NONE	UINT32_MAX
#define INDEX_SLAB_BITS 26 /* 64 MiB of addresses */

struct index_record {
	_Alignas(32) uint64_t starts; /* aligned so that it never crosses a cache line */
	uint64_t covered;
	uint32_t rank;	/* blocks that start below this KiB */
	uint32_t dense; /* two blocks are in one granule: search the list instead */
};

struct index {
	const struct heap_block *block; /* borrowed */
	uint32_t n;
	uint32_t *directory; /* slab of each 64 MiB, from 1; 0: none */
	struct index_record **slab;
	uint32_t nslabs;
	uint64_t low, span;   /* range of all blocks */
	uint8_t address_bits; /* of the architecture */
};

/* Builds the index.  @blocks: sorted by address, not overlapping; must stay in place while the
 * index is used.  @address_bits: no address has more bits.  Return: 0, -ENOMEM, or -E2BIG (more
 * than 4 G blocks, or one above all addresses). */
int index_build(struct index *x, const struct heap_block *blocks, size_t n, uint8_t address_bits);
void index_free(struct index *x);
/* Frees all but the range of the blocks: only index_above() and index_search() work afterwards. */
void index_trim(struct index *x);
/* Return: number of the first block that starts above @addr; @x->n if none does. */
uint32_t index_above(const struct index *x, uint64_t addr);
/* Searches the list, for dense records. */
uint32_t index_search(const struct index *x, uint64_t addr);

/* Return: the record of @addr, or NULL if no block is near it. */
static inline const struct index_record *index_record(const struct index *x, uint64_t addr)
{
	uint32_t slab;

	if (addr - x->low >= x->span)
		return NULL;
	slab = x->directory[addr >> INDEX_SLAB_BITS];
	return slab ? &x->slab[slab][(addr & ((1u << INDEX_SLAB_BITS) - 1)) >> 10] : NULL;
}

/* Return: number of the block that contains @addr (inner addresses count), or INDEX_NONE. */
static inline uint32_t index_in(const struct index *x, const struct index_record *r, uint64_t addr)
{
	unsigned int granule = addr >> 4 & 63;

	if (!(r->covered >> granule & 1))
		return INDEX_NONE;
	if (r->dense)
		return index_search(x, addr);
	return r->rank + (uint32_t)__builtin_popcountll(r->starts & (~0ull >> (63 - granule))) - 1;
}

static inline uint32_t index_find(const struct index *x, uint64_t addr)
{
	const struct index_record *r = index_record(x, addr);

	return r ? index_in(x, r, addr) : INDEX_NONE;
}

#endif
