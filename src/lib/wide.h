/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Products of two 64-bit numbers, for compilers without a 128-bit type, too. */
#ifndef LIB_WIDE_H
#define LIB_WIDE_H

#include <stdint.h>

/* Return: the upper 64 bits of @a * @b. */
static inline uint64_t wide_high(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	return (uint64_t)((unsigned __int128)a * b >> 64);
#else
	uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
	uint64_t middle = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
	uint64_t other = (a & UINT32_MAX) * (b >> 32) + (middle & UINT32_MAX);

	return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
#endif
}

/* Return: @a * @b / @c, rounded down; UINT64_MAX when it is more than that or @c is 0. */
static inline uint64_t wide_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t rest = wide_high(a, b), low = a * b, quotient = 0;

	if (rest >= c)
		return UINT64_MAX;
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t carry = rest >> 63;

		rest = rest << 1 | (low >> bit & 1);
		if (carry || rest >= c) {
			rest -= c;
			quotient |= 1ull << bit;
		}
	}
	return quotient;
}

#endif
