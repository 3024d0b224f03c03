/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/estimate.h"

#include <math.h>

/* Uniform in [0, 1): the finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static double uniform(uint64_t salt)
{
	salt = (salt ^ salt >> 30) * 0xbf58476d1ce4e5b9ull;
	salt = (salt ^ salt >> 27) * 0x94d049bb133111ebull;
	return (double)((salt ^ salt >> 31) >> 11) * 0x1p-53;
}

static struct estimate thinned(uint64_t size, uint32_t weight)
{
	struct estimate e = {.blocks = 1ull << weight, .bytes = size << weight};

	e.factor = (double)e.blocks;
	e.variance_blocks = (e.factor - 1) * e.factor;
	e.variance_bytes = e.variance_blocks * (double)size * (double)size;
	return e;
}

struct estimate estimate_block(uint64_t interval, uint64_t size, uint32_t weight, uint64_t salt)
{
	struct estimate e = {.blocks = 1, .bytes = size, .factor = 1};
	double p;

	if (weight)
		return thinned(size, weight);
	if (!interval || !size)
		return e;
	p = -expm1(-(double)size / (double)interval);
	e.factor = 1 / p;
	e.blocks = (uint64_t)e.factor;
	e.blocks += uniform(salt) < e.factor - (double)e.blocks;
	e.bytes = (uint64_t)llround((double)size * e.factor);
	e.variance_blocks = (1 - p) * e.factor * e.factor;
	e.variance_bytes = e.variance_blocks * (double)size * (double)size;
	return e;
}
