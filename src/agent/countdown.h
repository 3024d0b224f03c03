/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Poisson sampling by bytes: points are distributed on the stream of a thread's requested bytes,
 * one per interval on average.  A block is sampled if it contains a point: with probability 1 -
 * exp(-size / interval), independently of all others.  Distances between points are exponentially
 * distributed and memoryless, so the next point is drawn anew after a sampled block.  Uses only
 * integers.  Pure functions, which the unit test uses too.
 */
#ifndef AGENT_COUNTDOWN_H
#define AGENT_COUNTDOWN_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "lib/wide.h"

#define AG_LN2	     2977044472u /* ln 2, 32 fraction bits */
#define AG_LOG2_BITS 28

/* xorshift64* (Marsaglia 2003; multiplier by Vigna 2016). */
static inline uint64_t ag_countdown_random(struct ss_local *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * 0x2545f4914f6cdd1dull;
}

/*
 * Draws the number of bytes up to the next point: floor(-interval * ln(u)) with u = random / 2^64.
 * The bits of the logarithm are computed one by one: m in [1, 2) is squared; if the square is at
 * least 2, the bit is 1 and the square is halved.
 */
static inline int64_t ag_countdown_draw(struct ss_local *s, uint64_t interval)
{
	uint64_t r = ag_countdown_random(s) | 1, m, minus_log2, minus_ln, fraction = 0;
	uint32_t zeros = (uint32_t)__builtin_clzll(r);

	m = r << zeros;
	for (int i = 0; i < AG_LOG2_BITS; i++) {
		uint64_t square = wide_high(m, m);
		uint64_t bit = square >> 63;

		fraction = fraction << 1 | bit;
		m = bit ? square : square << 1;
	}
	minus_log2 = ((uint64_t)(zeros + 1) << 32) - (fraction << (32 - AG_LOG2_BITS));
	/* The products fit: 2^39 * 2^32 and 2^38 * SS_MAX_INTERVAL. */
	minus_ln = wide_high(minus_log2, AG_LN2) << 32 | minus_log2 * AG_LN2 >> 32;
	return (int64_t)(wide_high(minus_ln, interval) << 32 | minus_ln * interval >> 32);
}

/*
 * Counts a request of @size bytes, unless the entry code has done so (the counter is negative
 * then).  Return: whether the request is sampled.
 */
static inline bool ag_countdown_passes(struct ss_local *s, uint64_t size, uint64_t interval)
{
	if (s->left >= 0)
		s->left = (int64_t)((uint64_t)s->left - size);
	if (s->left >= 0)
		return false;
	s->left = ag_countdown_draw(s, interval);
	return true;
}

#endif
