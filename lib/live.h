/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live table: address -> size and stack of every live block, 16 bytes a slot, in buckets of a
 * cache line.  Open addressing; at a load of 0.64 to 0.8 it takes 20 to 25 bytes a live block.
 * While it grows (by a quarter) the old and the new table exist side by side.
 */
#ifndef LIB_LIVE_H
#define LIB_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_MAX_SIZE ((1ull << 48) - 1)

struct live_block {
	uint64_t addr, size;
	uint32_t stack;
};

struct live;
/* @percent: slots in use at most before it grows: 80 for little memory, less for speed.
 * Return: an empty table, or NULL when out of memory. */
struct live *live_new(unsigned int percent);
/* Makes an empty table large enough for @blocks, or leaves it as it is. */
void live_expect(struct live *l, uint64_t blocks);
void live_free(struct live *l);
/* Inserts; an earlier block at the address is given back in @old (addr 0: none).
 * Return: 0 or -ENOMEM. */
int live_put(struct live *l, const struct live_block *b, struct live_block *old);
/* Removes.  Return: true with @b filled if the address was live. */
bool live_take(struct live *l, uint64_t addr, struct live_block *b);
/* The same without removing it. */
bool live_find(const struct live *l, uint64_t addr, struct live_block *b);
/* Brings the slot of @addr near the processor, some events ahead. */
void live_prefetch(const struct live *l, uint64_t addr);
/* Walks the table, in no order: *@at is 0 at first.  Return: false when there is no block more. */
bool live_next(const struct live *l, uint64_t *at, struct live_block *b);
size_t live_count(const struct live *l);
/* Bytes of memory the table has. */
size_t live_memory(const struct live *l);

#endif
