/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Views: what is live and what was allocated so far, by stack and by thread, as a recording that has
 * only an index (formats/FORMAT.md). */
#ifndef RECORD_VIEW_H
#define RECORD_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include "record/pieces/piece_thread.h"

struct aggregator;
struct recorder_shared;
struct ss_control;

/* A view that a thread waits for. */
struct view {
	uint32_t from;	      /* write the frames of the stacks from this id on */
	struct piece_end end; /* file: set by the thread; the rest is filled by the aggregator */
	uint64_t behind_ns;
	bool done;
};

/* Has the aggregator fill @v, up to its end.  @block: of the session.  Return: 0, or -ESHUTDOWN when the
 * recording ended first. */
int view_take(struct recorder_shared *s, struct ss_control *block, struct view *v);
/* Fills @v with what was recorded until @now_ns.  To be called by the aggregator, or after its end. */
void view_fill(struct aggregator *a, struct view *v, uint64_t until_ns, uint64_t now_ns);
/* Fills the view that a thread waits for, if there is one.  Called by the aggregator.  @until_ns: all
 * events up to then have been processed. */
void view_put(struct aggregator *a, uint64_t until_ns, uint64_t now_ns);

#endif
