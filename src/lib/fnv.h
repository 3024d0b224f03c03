/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fowler-Noll-Vo hash (FNV-1a, 64 bits). */
#ifndef LIB_FNV_H
#define LIB_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return: the hash of what has the hash @h, and then @byte. */
static inline uint64_t fnv_byte(uint64_t h, uint8_t byte)
{
	return (h ^ byte) * 0x100000001b3ull;
}

static inline uint64_t fnv(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = fnv_byte(h, p[i]);
	return h;
}

static inline uint64_t fnv_text(const char *s)
{
	return fnv((const uint8_t *)s, strlen(s));
}

#endif
