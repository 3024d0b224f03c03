/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Poisson sampling by bytes: points are thrown on the stream of a thread's requested bytes, one per
 * interval on average, and a block is sampled if a point falls into it: with probability
 * 1 - exp(-size / interval), independently of all others.  The distances between points are
 * exponential; the process has no memory, so the next point is drawn anew behind a sampled block.
 * Integers only.  Pure: also for the unit test.
 */
#ifndef AGENT_COUNTDOWN_H
#define AGENT_COUNTDOWN_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "lib/wide.h"

#define CD_LN2	     2977044472u /* ln 2, 32 fraction bits */
#define CD_LOG2_BITS 28

/* xorshift64* (Marsaglia 2003; multiplier by Vigna 2016). */
static inline uint64_t countdown_random(struct ss_local *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * 0x2545f4914f6cdd1dull;
}

/*
 * Bytes up to the next point: floor(-interval * ln(u)) with u = random / 2^64.  The logarithm's
 * bits come one by one from squaring: m in [1, 2) is squared; at least 2 means a 1 and halves it.
 */
static inline int64_t countdown_draw(struct ss_local *s, uint64_t interval)
{
	uint64_t r = countdown_random(s) | 1, m, minus_log2, minus_ln, fraction = 0;
	uint32_t zeros = (uint32_t)__builtin_clzll(r);

	m = r << zeros;
	for (int i = 0; i < CD_LOG2_BITS; i++) {
		uint64_t square = wide_high(m, m);
		uint64_t bit = square >> 63;

		fraction = fraction << 1 | bit;
		m = bit ? square : square << 1;
	}
	minus_log2 = ((uint64_t)(zeros + 1) << 32) - (fraction << (32 - CD_LOG2_BITS));
	/* 2^39 * 2^32 and 2^38 * SS_MAX_INTERVAL fit the products. */
	minus_ln = wide_high(minus_log2, CD_LN2) << 32 | minus_log2 * CD_LN2 >> 32;
	return (int64_t)(wide_high(minus_ln, interval) << 32 | minus_ln * interval >> 32);
}

/*
 * Counts a request of @size bytes unless the entry code did (then the counter is negative already).
 * Return: whether it is sampled.
 */
static inline bool countdown_passes(struct ss_local *s, uint64_t size, uint64_t interval)
{
	if (s->left >= 0)
		s->left = (int64_t)((uint64_t)s->left - size);
	if (s->left >= 0)
		return false;
	s->left = countdown_draw(s, interval);
	return true;
}

#endif
