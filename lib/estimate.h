/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What one sampled block stands for, by Horvitz and Thompson (1952): a block of s bytes is in a
 * Poisson sample of one point per interval T with probability p = 1 - exp(-s/T), so it counts 1/p
 * times, and sums of such weights are unbiased.  Their variance is estimated by the sum of
 * (1 - p) * weight^2.
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
 * estimate_block() - what a recorded block stands for
 * @interval: of the recording, bytes; 0: every block is recorded and stands for itself
 * @size: requested, bytes; only blocks of at least 1 byte are ever sampled
 * @salt: any hash of what identifies the block.  Numbers of blocks are whole: a fraction is rounded
 *	up with its own probability, drawn from @salt, so that sums stay unbiased and a block always
 *	counts the same.
 */
struct estimate estimate_block(uint64_t interval, uint64_t size, uint64_t salt);

#endif
