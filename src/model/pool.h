/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data about live blocks besides address and size, which are in the live table: 17 bytes per block,
 * addressed by index, and 20 to 25 more for blocks that were reallocated or are far larger than
 * requested. */
#ifndef MODEL_POOL_H
#define MODEL_POOL_H

#include "lib/live.h"
#include "lib/vec.h"
#include "model/history.h"
#include "model/sites.h"

struct pooled;

struct pool {
	VEC(struct pooled *) part;
	uint32_t used;	 /* indices below this were allocated */
	uint32_t unused; /* an index below used that was returned, + 1; 0: none */
	struct sites sites;
	struct live *aside; /* for few blocks: chain, and large slack; NULL: for none */
};

/* Adds a block.  Return: 0 with @index set, or -ENOMEM. */
int pool_add(struct pool *p, const struct model_block *b, uint32_t *index);
/* The block of @lb, whose member stack has the index, in process number @process. */
struct model_block pool_block(const struct pool *p, const struct live_block *lb, uint16_t process);
/* As pool_block(), and returns the index to the pool. */
struct model_block pool_take(struct pool *p, const struct live_block *lb, uint16_t process);
/* The stack id of an entry.  The index may have been returned to the pool; then it is any stack id.
 */
uint32_t pool_stack(const struct pool *p, uint32_t index);
/* Prefetches the entry into the processor's cache. */
void pool_prefetch(const struct pool *p, uint32_t index);
void pool_free(struct pool *p);

#endif
