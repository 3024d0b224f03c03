/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What many live blocks have alike: stack, thread, function and flags, each combination once. */
#ifndef REPORT_SITES_H
#define REPORT_SITES_H

#include <stdint.h>
#include "lib/check.h"
#include "lib/vec.h"

struct site {
	uint32_t stack, tid;
	uint16_t hook;
	uint8_t flags;
	uint32_t blocks; /* that have it; 0: it may go */
};

/* All zero: empty. */
struct sites {
	VEC(struct site) at;
	uint32_t *table; /* open addressing: id + 1; NULL: none yet */
	uint32_t size;	 /* of the table, a power of two */
	uint32_t filled; /* ids in the table */
	uint32_t unused; /* an id that is not, + 1; its stack is the next such one */
};

/* One more block of @site.  Return: 0 with @id set, or -ENOMEM. */
__must_check int sites_add(struct sites *s, const struct site *site, uint32_t *id);
static inline const struct site *sites_at(const struct sites *s, uint32_t id)
{
	return &s->at.at[id];
}
/* One block less. */
static inline void sites_drop(struct sites *s, uint32_t id)
{
	s->at.at[id].blocks--;
}
void sites_free(struct sites *s);

#endif
