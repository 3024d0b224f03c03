/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sums of a model: by stack, by thread, by size, over time, and what was alive at the peak. */
#ifndef REPORT_ACCOUNT_H
#define REPORT_ACCOUNT_H

#include "report/model.h"

struct account {
	struct model *m;
	uint64_t live_bytes, live_blocks;
	uint64_t epoch;	   /* peaks so far, see group.peak_epoch */
	uint64_t point_ns; /* length of a point of the timeline */
	uint64_t now_ns;
};

/* Begins: all sums of @m are zero. */
void account_init(struct account *a, struct model *m);
/* Each returns 0 or -ENOMEM. */
int account_allocated(struct account *a, const struct model_block *b);
int account_faulted(struct account *a, const struct model_block *page);
int account_ended(struct account *a, const struct model_block *b, const struct mp_event *by,
		  enum block_end how);
int account_culled(struct account *a, const struct mp_culled *c);
/* Time passes: to be told before what happens at @now_ns. */
int account_time(struct account *a, uint64_t now_ns);
/* Ends: the timeline reaches model.end_ns, the totals are added up. */
int account_close(struct account *a);

#endif
