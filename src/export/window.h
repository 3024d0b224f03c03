/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a continuous profile has of one period of time. */
#ifndef EXPORT_WINDOW_H
#define EXPORT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group;

struct profile_window {
	/* [stack id], as many as the model has stacks: allocations and allocated_bytes of the period, live_blocks and
	 * live_bytes at its end. */
	const struct group *group;
	uint64_t start_unix_ns, duration_ns;
	bool allocated, live; /* which of them are written */
	bool symbols;	      /* functions and lines; else only addresses in files with build ids */
	const char *comment;  /* of pprof; NULL: none */
	/* How exact it is. */
	uint64_t lost_events; /* of the period */
	uint64_t all_lost_events,
	    lost_frees; /* since the recording began: live blocks can be too many by these frees */
	uint64_t
	    thinned; /* allocations left out since the recording began, for which others count more */
	uint64_t live_error; /* standard error of the sum of live bytes, if that is an estimate */
};

/* A number that says how exact a profile is. */
struct window_note {
	const char *name;
	uint64_t value;
};

#define WINDOW_NOTES 5

/* Collects the notes that are not zero; @live: of what is live, too; @allocated: of allocations, too.  Return: their
 * number. */
size_t window_notes(const struct profile_window *w, bool allocated, bool live,
		    struct window_note note[WINDOW_NOTES]);

#endif
