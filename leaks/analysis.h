/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof leaks from beginning to end: snapshot, heaps, graph, marks, clusters. */
#ifndef LEAKS_ANALYSIS_H
#define LEAKS_ANALYSIS_H

#include "leaks/census.h"
#include "leaks/clusters.h"
#include "leaks/graph.h"
#include "leaks/snapshot.h"
#include "leaks/why.h"

struct analysis_options {
	uint64_t max_pause_ms; /* 0: any */
	uint32_t confirm;      /* snapshots that must all show a leak, 1 or more */
	uint64_t interval_ms;  /* between them */
	uint64_t why;	       /* address to explain, 0: none */
	bool content;	       /* bytes of the program may be shown */
};

struct analysis {
	pid_t pid;
	char name[17], exe[512];
	uint32_t threads;
	uint32_t snapshots;	   /* more than asked for when a heap was just being changed */
	struct snapshot_plan plan; /* .mode: what it came to */
	uint64_t pause_ns, longest_pause_ns; /* of the last and of all snapshots */
	uint64_t longest_wait_ns; /* a thread waited for a processor so long in the longest pause */
	uint64_t walk_ns, scan_ns, mark_ns; /* how long memprof worked */
	uint64_t taken_ns;		    /* CLOCK_MONOTONIC of the last snapshot */
	uint64_t copy_ns;		    /* how long a copy lived, or the target stood */
	uint64_t live_count, live_bytes;
	struct census census;
	struct graph graph; /* empty after the analysis but for its counters */
	struct coverage cover;
	struct leaks leaks;
	struct clusters clusters;
	struct why why;
	bool target_gone; /* it ended while its copy was read; the report holds */
	bool overrun;	  /* a pause was longer than max_pause_ms; a report holds nevertheless */
};

/**
 * analysis_run() - find the leaks of a process
 * @t: from target_look(); released on return
 * @plan: from snapshot_plan()
 * Return: 0; -ETIME: the pause would exceed the limit, the process was left alone or, @a->overrun,
 * is not stopped again; -ESRCH: the process is gone; or another -errno; all with @err.
 */
int analysis_run(struct analysis *a, struct target *t, const struct snapshot_plan *plan,
		 const struct analysis_options *o, struct mp_err *err);
/* The same for an image that is open already (a core file). */
int analysis_of_image(struct analysis *a, struct image *img, const struct analysis_options *o,
		      struct mp_err *err);
void analysis_free(struct analysis *a);

#endif
