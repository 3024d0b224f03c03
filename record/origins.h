/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where live blocks come from, beside the stack: what a next piece has to say of them again.  16
 * bytes a block, by an index which the live table has in place of the stack. */
#ifndef RECORD_ORIGINS_H
#define RECORD_ORIGINS_H

#include <stdint.h>

struct origin {
	uint32_t stack, tid, slack; /* slack: usable - requested bytes */
	uint16_t hook;
	uint8_t flags; /* EV_F_NON_MAIN, EV_F_MMAPPED */
};

struct origins;

/* Return: an empty one, or NULL when out of memory. */
struct origins *origins_new(void);
void origins_free(struct origins *o);
/* Return: 0 with @index set, or -ENOMEM. */
int origins_add(struct origins *o, const struct origin *origin, uint32_t *index);
const struct origin *origins_at(const struct origins *o, uint32_t index);
/* The same; the index is given back. */
struct origin origins_take(struct origins *o, uint32_t index);

#endif
