/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pushes the profile of a recorded process again and again (attach --push), and serves the recorder's metrics: asks the recorder for its sums, and sends the
 * allocations since the last look and what is live now to each destination.  It is another process than the recorder, which
 * thus never waits for a network or a disk.
 */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "push/destination.h"

struct scrape;

struct push_options {
	pid_t pid; /* of a process with a recorder */
	struct destination destination[PUSH_DESTINATIONS];
	size_t n;
	uint64_t every_ms; /* length of a window */
	uint64_t for_ms;   /* 0: until told to end */
	const char *const *label;
	size_t labels;
	bool no_symbols;
	const char *spool;     /* directory; NULL: a temporary one */
	uint64_t limit;	       /* bytes of the spool of a destination, and of a directory */
	int stop;	       /* a descriptor that can be read when pushing must end */
	struct scrape *scrape; /* answers with the metrics of the recorder; NULL: none */
	/* Called by any thread: @failed says why nothing arrives at @d; NULL: it does again. */
	void (*report)(void *ctx, const struct destination *d, const char *failed);
	void *ctx;
};

struct push_result {
	uint64_t windows; /* pushed */
	uint64_t rejected,
	    lost; /* requests: servers did not want them; too many waited, or the disk was full */
	uint64_t waiting; /* in the spool; lost if that was a temporary one */
};

struct push;

/* A recording that began for being pushed: the first window begins with it, and the last one ends with it. */
struct push_recording {
	int over; /* a descriptor that can be read when the recording has ended; -1: it is not such a recording */
	int last_view; /* a file that then has the last view (recording_options.last_view) */
};

/* Prepares, so that what fails does so before the process is touched, and learns what is known of the process only while it
 * lives.  Starts no thread.  @o must stay.  Return: 0 with @out, or a negative errno with @err. */
int push_open(const struct push_options *o, struct push **out, struct mp_err *err);
/* Pushes until told to end, or until the recording ends; the last window reaches until then.  @p is freed.  Return: 0, or a
 * negative errno with @err: -ESHUTDOWN: the recording ended.  @r: filled in both cases. */
int push_run(struct push *p, const struct push_recording *recording, struct push_result *r,
	     struct mp_err *err);
/* Frees @p, if push_run() was not called. */
void push_close(struct push *p);

#endif
