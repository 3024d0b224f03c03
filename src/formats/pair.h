/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Convert between two adjacent 32-bit values in memory and the 64-bit word that they form.
 * Freestanding. */
#ifndef FORMATS_PAIR_H
#define FORMATS_PAIR_H

#include <stdint.h>

#define PAIR_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static inline uint64_t pair_word(uint32_t first, uint32_t second)
{
	return PAIR_LITTLE ? first | (uint64_t)second << 32 : (uint64_t)first << 32 | second;
}

static inline uint32_t pair_first(uint64_t word)
{
	return (uint32_t)(PAIR_LITTLE ? word : word >> 32);
}

static inline uint32_t pair_second(uint64_t word)
{
	return (uint32_t)(PAIR_LITTLE ? word >> 32 : word);
}

#endif
