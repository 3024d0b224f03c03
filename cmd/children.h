/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What became of the processes that were followed, and the summary of that. */
#ifndef CMD_CHILDREN_H
#define CMD_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "lib/vec.h"

#define CHILD_PATH 1024 /* of a recording's path that is kept to be shown */

struct child_recording {
	pid_t pid;
	uint64_t allocations;  /* or page faults, if those are recorded */
	uint64_t mapped_bytes; /* where it has a heap of its own: summary_own_heap() */
	char path[CHILD_PATH];
};

/* All that were refused with one exit status. */
struct child_refusal {
	uint64_t count;
	struct mp_err first; /* what the first of them was told */
};

struct children {
	uint64_t recorded, allocations, mapped_bytes;
	uint64_t ended;	  /* gone before the recorder was attached */
	uint64_t unasked; /* alive, but the recording ended before it was their turn */
	VEC(struct child_recording) shown; /* the first few */
	VEC(struct child_refusal) refused;
};

/* A recording is complete; @r is copied. */
void children_recorded(struct children *c, const struct child_recording *r);
/* One could not be recorded, for the reason @why (copied). */
void children_refused(struct children *c, const struct mp_err *why);
/* One line with the numbers, one for each reason, and the recordings if they are few.  Nothing when
 * there was no child.  @event: what was recorded, "allocation" or "page fault". */
void children_print(const struct children *c, const char *event);
void children_free(struct children *c);

#endif
