/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live table: address -> size and stack of every live block, 16 bytes per slot, in buckets of
 * a cache line.  Open addressing; it grows above a given load.  Up to 8 MiB it grows by a quarter and
 * the old and the new table exist side by side: at a load of 0.68, 24 to 30 bytes per live block.
 * From then on it grows by a tenth in place: 24 to 26 bytes.  For that it reserves 64 GiB of
 * address space; if that is not possible, it grows as before.
 */
#ifndef LIB_LIVE_H
#define LIB_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_MAX_SIZE ((0x7fe0ull << 32) - 1)

struct live_block {
	uint64_t addr, size; /* size: at most LIVE_MAX_SIZE; with a weight less than 4 GiB */
	uint32_t stack;
	uint8_t weight; /* the block represents 2^weight; at most 31 */
};

struct live;
/* @percent: load in percent above which it grows: 80 for little memory, less for speed.
 * Return: an empty table, or NULL when out of memory. */
struct live *live_new(unsigned int percent);
void live_free(struct live *l);
/* Inserts a block.  A previous block at the address is returned in @old (addr 0: none).
 * Return: 0 or -ENOMEM, the table then unchanged. */
int live_put(struct live *l, const struct live_block *b, struct live_block *old);
/* Removes a block.  Return: true with @b filled if the address was live. */
bool live_take(struct live *l, uint64_t addr, struct live_block *b);
/* As live_take(), without removing the block. */
bool live_find(const struct live *l, uint64_t addr, struct live_block *b);
/* Prefetches what a search for @addr needs into the cache. */
void live_prefetch(const struct live *l, uint64_t addr);
/* Iterates over the table, in no particular order. *@at must be 0 at first.  Return: false if there
 * are no more blocks. */
bool live_next(const struct live *l, uint64_t *at, struct live_block *b);
/* Return: the number of blocks. */
size_t live_count(const struct live *l);
/* Return: the bytes of memory that the table occupies, without address space that is only reserved. */
size_t live_memory(const struct live *l);

#endif
