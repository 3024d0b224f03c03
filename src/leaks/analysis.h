/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memprof leaks from beginning to end.  The steps, and where each is:
 *
 * - heaps/consistent.h: a snapshot of the process and its live blocks
 *
 * - graph.h, roots.h, edges.h: which block has the address of which
 *
 * - mark.h: the blocks that no root reaches
 *
 * - sightings.h: drops leaks that further snapshots do not have
 *
 * - clusters.h, types.h: groups leaks for the report; known.h: drops those that are known
 *
 * - why.h: explains instead why one block is alive
 *
 * The report is written by cmd/heap/leaks_text.c, or by json.h.  heap_types.h belongs to memprof heap.
 */
#ifndef LEAKS_ANALYSIS_H
#define LEAKS_ANALYSIS_H

#include "heaps/census.h"
#include "leaks/clusters.h"
#include "leaks/graph.h"
#include "leaks/mark.h"
#include "leaks/roots.h"
#include "leaks/why.h"
#include "snapshot/snapshot.h"

#define ANALYSIS_INTERVAL_MS 10000 /* the usual interval */

struct analysis_options {
	uint64_t max_pause_ms; /* 0: no limit */
	uint32_t confirm;      /* number of snapshots, 1 or more, that must all show a leak */
	uint64_t interval_ms;  /* between the snapshots */
	uint64_t why;	       /* address to explain, 0: none */
	bool content;	       /* bytes of the program's memory may be printed */
};

struct analysis {
	pid_t pid;
	char name[17], exe[512];
	uint32_t threads;
	uint32_t snapshots;		     /* more than requested if a heap was changing */
	struct snapshot_plan plan;	     /* .mode: the mode that was used in the end */
	uint64_t pause_ns, longest_pause_ns; /* of the last snapshot; the longest of all */
	uint64_t longest_wait_ns; /* of one thread for a processor, in the longest pause */
	uint64_t walk_ns, scan_ns, mark_ns; /* time that memprof worked */
	uint64_t taken_ns;		    /* CLOCK_MONOTONIC at the last snapshot */
	uint64_t copy_ns; /* lifetime of the copy, or time that the target was stopped */
	uint64_t live_count, live_bytes;
	struct census census;
	struct graph graph; /* empty after the analysis except for its counters */
	struct coverage cover;
	struct leaks leaks;
	struct clusters clusters;
	struct why why;
	bool target_gone; /* it ended while its copy was read; the report is valid */
	bool overrun;	  /* a pause exceeded max_pause_ms; a report is valid nevertheless */
};

/**
 * analysis_run() - find the leaks of a process
 * @t: from target_look(); released on return
 * @plan: from snapshot_plan()
 * Return: 0; -ETIME: the pause would exceed the limit and the process was left alone, or, with
 * @a->overrun, a pause did and the process is not stopped again; -ESRCH: the process is gone; or
 * another -errno; all with @err.
 */
int analysis_run(struct analysis *a, struct target *t, const struct snapshot_plan *plan,
		 const struct analysis_options *o, struct mp_err *err);
/* As analysis_run(), for an image that is already open (a core file). */
int analysis_of_image(struct analysis *a, struct image *img, const struct analysis_options *o,
		      struct mp_err *err);
void analysis_free(struct analysis *a);

#endif
