/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sums of the blocks of a recording: by stack, by size, over time.  Filled by model/sums/totals.c,
 * or from the recording's own sums by model/sums/quick.c. */
#ifndef MODEL_SUMS_SUMS_H
#define MODEL_SUMS_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"
#include "model/group.h"
#include "model/sums/shape.h"
#include "model/sums/thinned.h"

/* Classes for blocks of 0 bytes, of 1, of 2, of 3 to 4, of 5 to 8 ... */
struct size_class {
	uint64_t allocations, allocated_bytes, usable_bytes, temporary;
	uint64_t live_blocks, live_bytes, live_usable;
};
#define SIZE_CLASSES 65u

static inline uint32_t size_class_of(uint64_t size)
{
	return size > 1 ? 65u - (uint32_t)__builtin_clzll(size - 1) : (uint32_t)size;
}

/* A section of the timeline. */
struct timeline_point {
	uint64_t time_ns;		  /* its end; it begins at the end of the one before */
	uint64_t live_bytes, live_blocks; /* at its end */
	uint64_t peak_bytes, peak_blocks; /* highest value in it */
	uint64_t allocations, frees;	  /* in this section */
	uint64_t allocated_bytes, freed_bytes;
};

struct sums {
	/* [stack id]; 0: no stack.  model/facts.c makes it as long as model_stacks.at, and counts
	 * the mappings of each stack. */
	struct group *group;
	struct group total; /* of all groups */
	struct size_class size_class[SIZE_CLASSES];
	VEC(struct timeline_point) timeline;
	struct shapes shapes; /* model/sums/shape.c */
	uint64_t peak_bytes, peak_blocks, peak_time_ns;
	/* Highest live bytes of the blocks that the recording has one by one; with culled ones it is
	 * peak_bytes, unless there is a filter or the recording is of several processes. */
	uint64_t kept_peak_bytes;
	bool peak_has_culled;
	uint64_t carried_blocks, carried_bytes; /* live at the hand-over from the recorder before */
	uint64_t culled_blocks, culled_bytes;	/* in the sums, but not as single blocks */
	struct thinned thinned;
	uint64_t unsized; /* page faults without a size: counted as smallest pages */
};

#endif
