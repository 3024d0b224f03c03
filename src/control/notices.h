/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a recording reports to the caller of recording_run(), recording_launch() and follow_run(),
 * while it runs and when it ends.  control/ itself prints nothing.
 *
 * The functions are called by the thread that runs the recording.  follow_run() runs each recording
 * in a process of its own, which calls them there.  All must be set.
 */
#ifndef CONTROL_NOTICES_H
#define CONTROL_NOTICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "control/children.h"
#include "control/embed.h"
#include "control/summary.h"
#include "lib/err.h"
#include "record/recorder.h"

/* How a recording begins. */
struct recording_begun {
	pid_t pid;
	bool page_faults;	/* page faults are recorded, not allocations */
	const char *allocators; /* names of those that were found */
	size_t hooks;		/* number of functions hooked */
	const char *path;	/* of the recording */
};

struct notices {
	/* A message for the user: one line without newline; names in it are printable(). */
	void (*message)(void *ctx, const char *line);
	/* An error that ends the recording or keeps the process from being restored. */
	void (*error)(void *ctx, const struct mp_err *err);
	/* The recording has begun.  Not called with recording_options.quiet. */
	void (*begun)(void *ctx, const struct recording_begun *b);
	/* The start is over: a program that waits for it can continue.  Called after begun(), and
	 * by follow_run() for each process whose recording has begun. */
	void (*started)(void *ctx);
	/* Once a second while the recording runs.  Not called with recording_options.quiet. */
	void (*progress)(void *ctx, const struct recorder_progress *p, bool page_faults);
	/* No progress() follows.  Not called with recording_options.quiet. */
	void (*progress_over)(void *ctx);
	/* The recording has ended and is complete, except for write errors. */
	void (*ended)(void *ctx, const struct summary *s);
	/* The binaries of the executed code have been put into the recording (--embed). */
	void (*embedded)(void *ctx, const struct embedding *e);
	/* @n processes forked from a recorded one were restored, which can be 0.  @unfollowed: all
	 * that follow_run() did not follow. */
	void (*restored)(void *ctx, uint32_t n, bool unfollowed);
	/* follow_run() ends.  Not called with recording_options.quiet. */
	void (*followed)(void *ctx, const struct children *c, bool page_faults);
	void *ctx; /* passed to the functions */
};

/* Return: functions that do nothing, for a caller that sets those that it wants. */
struct notices notices_silent(void *ctx);
/* Reports a message, formatted as by printf(), of at most 8191 bytes. */
void notice(const struct notices *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reports an error.  Return: its enum mp_exit. */
int notice_error(const struct notices *n, const struct mp_err *err);

#endif
