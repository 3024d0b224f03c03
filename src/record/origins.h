/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The origin of live blocks, which the next piece of a rotated recording must repeat, as must the file of
 * the live heap (live_file.h).  24 bytes per block, addressed by an index that the live table stores in place of the stack id. */
#ifndef RECORD_ORIGINS_H
#define RECORD_ORIGINS_H

#include <stdint.h>

struct origin {
	uint64_t time_ns;	    /* of the allocation */
	uint32_t stack, tid, slack; /* slack: usable - requested bytes */
	uint16_t hook;
	uint8_t flags; /* EV_F_NON_MAIN, EV_F_MMAPPED */
};

struct origins;

/* Return: an empty table, or NULL when out of memory. */
struct origins *origins_new(void);
void origins_free(struct origins *o);
/* Return: 0 with @index set, or -ENOMEM. */
int origins_add(struct origins *o, const struct origin *origin, uint32_t *index);
const struct origin *origins_at(const struct origins *o, uint32_t index);
/* Return: the entry, which is removed; its index can be reused. */
struct origin origins_take(struct origins *o, uint32_t index);

#endif
