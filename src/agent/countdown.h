/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Poisson sampling by bytes, with a constant interval (ag_countdown_passes) or within a budget
 * (ag_countdown_weigh): points are distributed on the stream of a thread's requested bytes,
 * one per interval on average.  A block is sampled if it contains a point: with probability 1 -
 * exp(-size / interval), independently of all others.  Distances between points are exponentially
 * distributed and memoryless, so the next point is drawn anew after a sampled block.  Uses only
 * integers.  Pure functions, which the unit test uses too.
 */
#ifndef AGENT_COUNTDOWN_H
#define AGENT_COUNTDOWN_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/record.h"
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

/*
 * Sampling within a budget.  The level, whose interval is T = 2^level bytes, can change with every
 * draw.  A block is recorded with a probability of 2^-k that follows from its size and the level, so
 * it represents 2^k blocks.
 *
 * The first point of a Poisson process is less than y bytes after the beginning of a block with
 * probability 1 - exp(-y/T).  That is 2^-k for y = -T * ln(1 - 2^-k).  k is the smallest one for
 * which the block has so many bytes, and the block is recorded if the point is among them.
 *
 * The countdown ends after the reach, 2T, at the latest.  A point beyond is drawn anew there, because
 * the distances have no memory.  So every block of more than the reach enters the agent, and is
 * recorded.
 */
#define AG_POINT_BITS 16
#define AG_NOT_CHOSEN UINT32_MAX

static inline int64_t ag_countdown_reach(uint32_t level)
{
	uint64_t reach = 2ull << level;

	return (int64_t)(reach < MPR_WEIGHT_MAX_SIZE ? reach : MPR_WEIGHT_MAX_SIZE - 1);
}

/* Return: the distance to the next point, AG_POINT_BITS fraction bits. */
static inline uint64_t ag_countdown_point(struct ss_local *s, uint32_t level)
{
	return (uint64_t)ag_countdown_draw(s, 1ull << (level + AG_POINT_BITS));
}

/* Begins a countdown with @level: 0, or SS_LEVEL_MIN to SS_LEVEL_MAX. */
static inline void ag_countdown_restart(struct ss_local *s, uint32_t level)
{
	uint64_t point = 0;
	int64_t left = -1, reach;

	if (level) {
		point = ag_countdown_point(s, level);
		reach = ag_countdown_reach(level);
		left = (int64_t)(point >> AG_POINT_BITS);
		if (left > reach)
			left = reach;
	}
	/* Together, so that a signal handler hardly ever comes between. */
	s->level = level;
	s->fraction = (uint32_t)(point & ((1u << AG_POINT_BITS) - 1));
	s->drawn = left;
	s->left = left;
}

/* Return: @part of the interval of @level, AG_POINT_BITS fraction bits. */
static inline uint64_t ag_countdown_part(uint32_t part, uint32_t level)
{
	const uint32_t bits = level + AG_POINT_BITS;

	return bits < 32 ? part >> (32 - bits) : (uint64_t)part << (bits - 32);
}

/* Return: floor(log2(@n)), @n not 0. */
static inline uint32_t ag_log2(uint64_t n)
{
	return 63 - (uint32_t)__builtin_clzll(n);
}

/**
 * ag_countdown_weigh() - decide whether a block is recorded that has made the countdown negative
 * @part: ss_control.part
 * @s: after the block's @size was subtracted; to be restarted afterwards
 * Return: k if it is recorded and represents 2^k blocks, or AG_NOT_CHOSEN.
 */
static inline uint32_t ag_countdown_weigh(const uint32_t *part, struct ss_local *s, uint64_t size)
{
	uint32_t level = s->level, k;
	uint64_t at, y;
	int64_t reach;

	if (!level)
		return 0;
	reach = ag_countdown_reach(level);
	if (size > (uint64_t)reach)
		return 0;
	if (!size)
		return AG_NOT_CHOSEN;
	at = ((uint64_t)s->left + size) << AG_POINT_BITS;
	at += s->drawn == reach ? ag_countdown_point(s, level) : s->fraction;
	/* y is a little more than T / 2^k. */
	k = level > ag_log2(size) ? level - ag_log2(size) : 1;
	y = ag_countdown_part(part[k], level);
	if (y > size << AG_POINT_BITS)
		y = ag_countdown_part(part[++k], level);
	return at < y ? k : AG_NOT_CHOSEN;
}

#endif
