/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pushes the profile of a recorded process again and again (attach --push): asks the recorder for its sums, and brings the
 * allocations since the last look and what is live to each store.  It is another process than the recorder, which thus
 * never waits for a network or a disk.
 */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"

struct metrics;
struct push;
struct stores;

/* Of all processes that a command records. */
struct push_options {
	struct stores *stores;
	uint64_t every_ms; /* length of a window */
	const char *const *label;
	size_t labels;
	bool no_symbols;
};

/* A recording that began for being pushed: the first window begins with it, and the last one ends with it. */
struct push_recording {
	int over; /* a descriptor that can be read when the recording has ended; -1: it is not such a recording */
	int last_view; /* a file that then has the last view (recording_options.last_view) */
};

/* Learns what is known of process @pid only while it lives.  Starts no thread.  @o must stay.  Return: 0 with @out, or a
 * negative errno with @err. */
int push_open(const struct push_options *o, pid_t pid, struct push **out, struct mp_err *err);
/* Pushes until push_end(), or until the recording ends; the last window reaches until then.  To be called when the process
 * is being recorded.  Return: 0, or a negative errno with @err: -ESHUTDOWN: the recording ended. */
int push_run(struct push *p, const struct push_recording *recording, struct mp_err *err);
/* After push_run(), or if that was not called. */
void push_close(struct push *p);

/* The following can be called while another thread is in push_run(). */

/* Has push_run() push the last window and return; ends the recording, if that began for being pushed. */
void push_end(struct push *p);
/* Has push_run() look at the recorder soon. */
void push_look(struct push *p);
/* Return: the values of the last look. */
struct metrics push_metrics(struct push *p);

#endif
