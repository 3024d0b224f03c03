/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Estimates how many blocks one sampled block represents, by Horvitz and Thompson (1952): a block
 * of s bytes is in a Poisson sample of one point per interval T with probability p = 1 -
 * exp(-s/T), so it counts 1/p times, and sums of such weights are unbiased.  Their variance is
 * estimated by the sum of (1 - p) * weight^2.  A block that thinning recorded with probability
 * p = 2^-k (agent/thin.h) likewise counts 2^k times.
 */
#ifndef LIB_ESTIMATE_H
#define LIB_ESTIMATE_H

#include <stdint.h>

struct estimate {
	uint64_t blocks, bytes;
	double factor; /* 1/p; 1 when nothing is sampled */
	double variance_blocks, variance_bytes;
};

/**
 * estimate_block() - compute how many blocks and bytes a recorded block represents
 * @interval: sampling interval of the recording, bytes; 0: every block is recorded and counts once
 * @size: requested bytes; blocks of 0 bytes are never sampled
 * @weight: the block represents 2^@weight blocks; 0 in a sampled recording
 * @salt: any hash that identifies the block.  The number of blocks is an integer: a fraction is
 * rounded up with a probability equal to it, drawn from @salt, so that sums are unbiased and a
 * block always has the same estimate.
 */
struct estimate estimate_block(uint64_t interval, uint64_t size, uint32_t weight, uint64_t salt);

#endif
