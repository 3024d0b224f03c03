/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* musl's two allocators: detects which one is present; data structures of the old one. */
#ifndef HEAPS_MUSL_MUSL_H
#define HEAPS_MUSL_MUSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "snapshot/image.h"

#define MUSL_OLD_BINS	  64
#define MUSL_OLD_ALIGN	  32 /* SIZE_ALIGN: alignment of blocks and sizes, bytes */
#define MUSL_OLD_OVERHEAD 16 /* of a chunk's header */
#define MUSL_OLD_IN_USE	  1ull

/* Only free chunks have the last two words. */
struct musl_old_chunk {
	uint64_t psize, csize, next, prev;
};

struct musl_old_bin {
	int32_t lock[2];
	uint64_t head, tail;
};

/* The static variable mal. */
struct musl_old_mal {
	uint64_t binmap;
	struct musl_old_bin bins[MUSL_OLD_BINS];
	int32_t lock[2];
};
_Static_assert(sizeof(struct musl_old_mal) == 1552, "as in musl");

static inline uint64_t musl_old_size(uint64_t field)
{
	return field & ~MUSL_OLD_IN_USE;
}

static inline bool musl_old_plausible(uint64_t field)
{
	return musl_old_size(field) >= MUSL_OLD_ALIGN && musl_old_size(field) % MUSL_OLD_ALIGN == 0;
}

/* BIN_TO_CHUNK() for bin @i of the mal at @mal: the bin's head and tail are at the offsets of a
 * chunk's next and prev. */
static inline uint64_t musl_old_bin_chunk(uint64_t mal, int i)
{
	uint64_t bin =
	    mal + offsetof(struct musl_old_mal, bins) + (uint64_t)i * sizeof(struct musl_old_bin);

	return bin + offsetof(struct musl_old_bin, head) - offsetof(struct musl_old_chunk, next);
}

/* Is musl's dynamic linker, which is also its C library, mapped? */
bool musl_is_there(const struct image *img);
/* Finds mallocng's context in static data.  Return: 1: found; 0: not found; or -ENOMEM. */
int musl_ng_is_there(struct image *img);
/* Finds the old malloc's bins.  Return: 1 with their address in *@at and their contents in *@mal;
 * 0: not found, or no chunk was ever freed; or -ENOMEM. */
int musl_old_find(struct image *img, uint64_t *at, struct musl_old_mal *mal);

#endif
