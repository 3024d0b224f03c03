/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interns what many live blocks have in common: thread, function, flags and weight. */
#ifndef MODEL_HISTORY_SITES_H
#define MODEL_HISTORY_SITES_H

#include <stdint.h>
#include "lib/check.h"
#include "lib/vec.h"

struct site {
	uint32_t tid;
	uint16_t hook;
	uint8_t flags, weight;
	uint32_t blocks; /* number of blocks that refer to it; 0: it can be removed */
};

/* Zero-initialize. */
struct sites {
	VEC(struct site) at;
	uint32_t *table; /* open addressing: id + 1; NULL: not allocated yet */
	uint32_t size;	 /* of the table; a power of two */
	uint32_t filled; /* number of ids in the table */
	uint32_t unused; /* first unused id + 1, 0: none; its .tid is the next one */
};

/* Adds a block of @site.  Return: 0 with @id set, or -ENOMEM. */
__must_check int sites_add(struct sites *s, const struct site *site, uint32_t *id);
static inline const struct site *sites_at(const struct sites *s, uint32_t id)
{
	return &s->at.at[id];
}
/* Removes a block of the site. */
static inline void sites_drop(struct sites *s, uint32_t id)
{
	s->at.at[id].blocks--;
}
void sites_free(struct sites *s);

#endif
