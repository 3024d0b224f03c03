/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The timeline of a model (sums.timeline): points that become longer as the recording does.  They are
 * made of the blocks of the recording; or of its sections, if it is culled and there is no filter,
 * since the blocks that were culled are in those only.
 */
#ifndef MODEL_SUMS_TIMELINE_H
#define MODEL_SUMS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct sums;

struct timeline {
	struct sums *sums;
	uint64_t point_ns; /* length of a point that is made of blocks */
	bool has_sections; /* it is made of sections */
	bool ignores_sections;
};

/* @with_sections: whether to use sections, if there are any. */
void timeline_init(struct timeline *t, struct sums *sums, bool with_sections);
/* Advances to @now_ns, before changes at that time.  Return: 0 or -ENOMEM. */
int timeline_time(struct timeline *t, uint64_t now_ns, uint64_t live_bytes, uint64_t live_blocks);
/* What is live now. */
void timeline_level(struct timeline *t, uint64_t live_bytes, uint64_t live_blocks);
/* Counts allocations and frees in the newest point, to which those that come slightly late belong,
 * too. */
void timeline_allocated(struct timeline *t, uint64_t blocks, uint64_t bytes);
void timeline_freed(struct timeline *t, uint64_t blocks, uint64_t bytes);
/* Return: 0 or -ENOMEM. */
int timeline_section(struct timeline *t, const struct mp_section *s);
/* Ends the newest point at @end_ns. */
void timeline_close(struct timeline *t, uint64_t end_ns);

#endif
