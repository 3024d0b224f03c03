/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A set of small numbers, as the bits of an array of words. */
#ifndef LIB_BITMAP_H
#define LIB_BITMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Return: an empty set for the numbers up to @n, to be freed; NULL when out of memory. */
static inline uint64_t *bitmap_new(uint64_t n)
{
	return calloc(n / 64 + 1, sizeof(uint64_t));
}

static inline bool bitmap_has(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static inline void bitmap_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static inline void bitmap_clear(uint64_t *bits, uint64_t i)
{
	bits[i / 64] &= ~(1ull << i % 64);
}

#endif
