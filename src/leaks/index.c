/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_SIZE ((1ull << (INDEX_SLAB_BITS - 10)) * sizeof(struct index_record))

static struct index_record *record_for(struct index *x, uint64_t addr)
{
	uint32_t *slot = &x->directory[addr >> INDEX_SLAB_BITS];

	if (!*slot) {
		struct index_record **grown =
		    reallocarray(x->slab, x->nslabs + 1ull, sizeof(*grown));

		if (!grown)
			return NULL;
		x->slab = grown;
		x->slab[x->nslabs] = mmap(NULL, SLAB_SIZE, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (x->slab[x->nslabs] == MAP_FAILED)
			return NULL;
		*slot = x->nslabs++;
	}
	return &x->slab[*slot][(addr & ((1u << INDEX_SLAB_BITS) - 1)) >> 10];
}

/* Marks the granules from @addr to @end as covered.  A record first reached from below gets the
 * number of blocks that started before it. */
static bool cover(struct index *x, uint64_t addr, uint64_t end, uint32_t next)
{
	while (addr < end) {
		uint64_t stop = (addr | 1023) + 1;
		struct index_record *r = record_for(x, addr);
		unsigned int first = addr >> 4 & 63, last;

		if (!r)
			return false;
		if (stop > end)
			stop = end;
		last = (stop - 1) >> 4 & 63;
		if (!r->covered && !r->starts)
			r->rank = next;
		r->covered |= (~0ull << first) & (~0ull >> (63 - last));
		addr = stop;
	}
	return true;
}

int index_build(struct index *x, const struct heap_block *blocks, size_t n, uint8_t address_bits)
{
	memset(x, 0, sizeof(*x));
	x->address_bits = address_bits;
	if (n >= INDEX_NONE)
		return -E2BIG;
	x->block = blocks;
	x->n = (uint32_t)n;
	if (!n)
		return 0;
	x->low = blocks[0].addr & ~15ull;
	x->span = blocks[n - 1].addr + blocks[n - 1].size - x->low;
	x->directory = calloc(1u << (address_bits - INDEX_SLAB_BITS), sizeof(*x->directory));
	x->slab = calloc(1, sizeof(*x->slab));
	if (!x->directory || !x->slab)
		return -ENOMEM;
	x->nslabs = 1; /* slab 0 means none */
	if ((x->low + x->span) >> address_bits)
		return -E2BIG;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = blocks[i].addr, end = addr + (blocks[i].size ? blocks[i].size : 1);
		struct index_record *r = record_for(x, addr);
		uint64_t bit = 1ull << (addr >> 4 & 63);

		if (!r)
			return -ENOMEM;
		if (!r->covered && !r->starts)
			r->rank = i;
		r->dense |= ((r->starts | r->covered) & bit) != 0;
		r->starts |= bit;
		if (!cover(x, addr, end, i + 1))
			return -ENOMEM;
	}
	return 0;
}

void index_trim(struct index *x)
{
	for (uint32_t i = 1; i < x->nslabs; i++)
		munmap(x->slab[i], SLAB_SIZE);
	free(x->slab);
	free(x->directory);
	x->slab = NULL;
	x->directory = NULL;
	x->nslabs = 0;
}

void index_free(struct index *x)
{
	index_trim(x);
	memset(x, 0, sizeof(*x));
}

uint32_t index_above(const struct index *x, uint64_t addr)
{
	size_t lo = 0, hi = x->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (x->block[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

uint32_t index_search(const struct index *x, uint64_t addr)
{
	uint32_t above = index_above(x, addr);
	const struct heap_block *b = x->block + above - 1;

	return above && addr - b->addr < (b->size | 15) ? above - 1 : INDEX_NONE;
}
