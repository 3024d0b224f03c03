/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes the sums of a model: by stack, by thread, by size, over time, and the live bytes of each
 * stack at the peak. */
#ifndef MODEL_SUMS_TOTALS_H
#define MODEL_SUMS_TOTALS_H

#include "model/history/history.h"
#include "model/sums/timeline.h"

struct model;

struct totals {
	struct model *m;
	uint64_t live_bytes, live_blocks;
	uint64_t epoch; /* number of peaks so far, see group.peak_epoch */
	struct timeline timeline;
	uint64_t now_ns;
	bool has_peaks; /* the recording has items with the peaks of its stacks */
};

/* Starts with all sums of @m at zero. */
void totals_init(struct totals *tot, struct model *m);
/* Count an event.  Each returns 0 or -ENOMEM. */
int totals_allocated(struct totals *tot, const struct model_block *b);
int totals_faulted(struct totals *tot, const struct model_block *page);
int totals_ended(struct totals *tot, const struct model_block *b, const struct mp_event *by,
		 enum block_end how);
int totals_culled(struct totals *tot, const struct mp_culled *c);
int totals_section(struct totals *tot, const struct mp_section *s);
void totals_stack_peak(struct totals *tot, const struct mp_stack_peak *p);
/* Advances the time.  Call it before the event that happened at @now_ns.  Return: 0 or -ENOMEM. */
int totals_time(struct totals *tot, uint64_t now_ns);
/* Extends the timeline to facts.end_ns and adds up the totals.  Return: 0 or -ENOMEM. */
int totals_close(struct totals *tot);

#endif
