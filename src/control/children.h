/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts what became of the followed processes. */
#ifndef CONTROL_CHILDREN_H
#define CONTROL_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "lib/vec.h"

#define CHILD_PATH     1024 /* bytes kept of a recording's path, for the summary */
#define CHILDREN_SHOWN 8    /* recordings that are listed one by one */

struct child_recording {
	pid_t pid;
	uint64_t allocations;  /* or page faults, if the recording is of page faults */
	uint64_t mapped_bytes; /* 0 unless it has its own heap: summary_own_heap() */
	char path[CHILD_PATH];
};

/* The children that were refused with the same exit status. */
struct child_refusal {
	uint64_t count;
	struct mp_err first; /* the error of the first one */
};

struct children {
	uint64_t recorded, allocations, mapped_bytes;
	uint64_t ended;	  /* ended before the recorder attached */
	uint64_t unasked; /* alive, but the recording ended before memprof attached to them */
	VEC(struct child_recording) shown; /* the first recordings, to be listed */
	VEC(struct child_refusal) refused;
};

/* Adds the complete recording of a child; @r is copied. */
void children_recorded(struct children *c, const struct child_recording *r);
/* Adds a child that could not be recorded because of @why, which is copied.  Return: 0 or -ENOMEM.
 */
int children_refused(struct children *c, const struct mp_err *why);
void children_free(struct children *c);

#endif
