/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live blocks of a process, by address, with all that a history tells of them.  All that an access
 * needs is in one cache line, but for the time and the ordinal, which are in another one and are kept only
 * on request.  At the load at which a part of the table grows, a block needs 22 bytes, and 16 for those
 * two; 20 to 25 more if it was reallocated, is far larger than requested, or has 4 GiB or more.
 */
#ifndef MODEL_HISTORY_LIVE_BLOCKS_H
#define MODEL_HISTORY_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/check.h"
#include "lib/live.h"
#include "model/history/history.h"
#include "model/history/sites.h"

#define LIVE_PARTS 16u

/* A part of the table grows by itself, so that only few blocks are in memory twice at a time. */
struct live_part {
	struct live_bucket *bucket;
	struct live_moment *moment; /* of each slot; NULL: not kept */
	uint64_t cap, n;	    /* buckets; blocks */
};

/* Zero-initialize. */
struct live_blocks {
	struct live_part part[LIVE_PARTS];
	struct sites sites;
	/* For few blocks what has no room in a slot; NULL: for none. */
	struct live *aside;   /* a large size, a large slack, the chain */
	struct live *far;     /* a large site or stack number */
	bool without_moments; /* time and ordinal are not kept: they are 0 */
	uint16_t process;     /* of the blocks */
};

void live_blocks_free(struct live_blocks *l);
/* Makes room in an empty table for @n blocks; does nothing if that is not possible. */
void live_blocks_expect(struct live_blocks *l, uint64_t n);
/* Inserts a block.  A previous block at the address is returned in @old (addr 0: none).  A block at address
 * 0 is not kept.  Return: 0 or -ENOMEM. */
__must_check int live_blocks_put(struct live_blocks *l, const struct model_block *b,
				 struct model_block *old);
/* Removes a block.  Return: true with @b filled if the address was live. */
bool live_blocks_take(struct live_blocks *l, uint64_t addr, struct model_block *b);
/* Prefetches what the next access to @addr needs into the cache. */
void live_blocks_prefetch(const struct live_blocks *l, uint64_t addr);
/* Calls @each for every block, in any order.  Return: 0 or the first nonzero value of @each. */
int live_blocks_each(const struct live_blocks *l,
		     int (*each)(void *ctx, const struct model_block *b), void *ctx);

#endif
