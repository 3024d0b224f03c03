/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is known of live blocks beside their address and size, which the live table has: 17 bytes
 * each, by index, and 20 to 25 more of those that went through a realloc or are far larger than was
 * asked for. */
#ifndef REPORT_POOL_H
#define REPORT_POOL_H

#include "lib/live.h"
#include "lib/vec.h"
#include "report/history.h"
#include "report/sites.h"

struct pooled;

struct pool {
	VEC(struct pooled *) part;
	uint32_t used;	 /* indices below were given out */
	uint32_t unused; /* of them, one that was given back, + 1 */
	struct sites sites;
	struct live *aside; /* of few blocks: chain, and slack that is large; NULL: of none */
};

/* Return: 0 with @index set, or -ENOMEM. */
int pool_add(struct pool *p, const struct model_block *b, uint32_t *index);
/* The block of @lb, whose member stack is the index, in process number @process. */
struct model_block pool_block(const struct pool *p, const struct live_block *lb, uint16_t process);
/* The same; the index is given back. */
struct model_block pool_take(struct pool *p, const struct live_block *lb, uint16_t process);
/* Also of an index that was given back; then of any stack. */
uint32_t pool_stack(const struct pool *p, uint32_t index);
/* Brings it near the processor. */
void pool_prefetch(const struct pool *p, uint32_t index);
void pool_free(struct pool *p);

#endif
