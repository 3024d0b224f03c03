/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What monitoring sees of a recorder: sums, losses, sampling and cost, in the text format of Prometheus (version 0.0.4).
 * Nothing of a stack.
 */
#ifndef PUSH_METRICS_H
#define PUSH_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "lib/vec.h"
#include "push/destination.h"
#include "push/outbox.h"

struct feed_state;
struct model;

/* Of a process.  Values are those of the last look, and 0 before it. */
struct metrics {
	pid_t pid;
	const char *service;		   /* its name; not owned */
	uint64_t looked_ns;		   /* CLOCK_MONOTONIC; 0: no look yet */
	uint64_t start_unix_ns, length_ns; /* of the recording */
	uint64_t behind_ns;
	uint64_t live_bytes, live_blocks, live_error;
	uint64_t allocations, allocated_bytes, frees;
	uint64_t lost_events, lost_frees, thinned;
	uint64_t sample_interval;
	uint64_t resident;		 /* 0: not known yet */
	uint64_t overhead_ppm, cost_ppm; /* of the process's CPU time; 0: no budget */
	uint64_t paused;
	uint64_t windows,
	    windows_lost; /* pushed; not made, because the recorder did not end in time */
};

struct metrics_store {
	const char *url;
	struct outbox_counts counts;
};

/* Processes of the machine that are not recorded. */
struct metrics_left_out {
	const char *why;
	uint64_t n;
};

/* Of all. */
struct metrics_of_all {
	VEC(struct metrics) process;
	uint64_t recorder_cpu_ns, recorder_resident;
	struct metrics_store store[PUSH_DESTINATIONS];
	size_t stores;
	VEC(struct metrics_left_out) left_out;
};

/* Takes the values of a look.  @pid of @m must be set. */
void metrics_look(struct metrics *m, const struct model *model, const struct feed_state *s);
/* Return: 0, or -ENOMEM or -EIO. */
int metrics_write(const struct metrics_of_all *m, FILE *out);
/* Fills in what process @pid uses. */
void metrics_recorder(struct metrics_of_all *m, pid_t pid);

#endif
