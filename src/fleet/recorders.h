/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The process that records all processes of a fleet, with some threads for each.  When the command that has started it ends, or
 * is killed, it ends all recordings, and thus restores the recorded processes.
 */
#ifndef FLEET_RECORDERS_H
#define FLEET_RECORDERS_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>
#include "control/options.h"
#include "lib/err.h"

#define RECORDERS_ENDING 8u /* recordings that end at the same time */

/* What the process says about a recorded one. */
enum recorders_news {
	RECORDERS_BEGUN = 1, /* it is being recorded */
	RECORDERS_MESSAGE,   /* a message for the user, in text */
	RECORDERS_ENDED,     /* it is not recorded, or no longer: status, text, reason */
};

struct recorders_message {
	enum recorders_news news;
	pid_t pid;
	int status;	/* enum mp_exit */
	int reason;	/* enum mp_end_reason; 0: the recording did not begin */
	char text[512]; /* why it could not be recorded or restored; "": nothing went wrong */
};

struct recorders {
	pid_t pid;
	int fd;		    /* can be read when there is a message, and at its end */
	char dir[PATH_MAX]; /* of recordings that are not kept; "": they are */
};

/* Starts the process.  To be called before the caller has threads.  @o: how to record, also for each that follows; its path has
 * %p, or is NULL: no recording is kept.  Return: 0 with @r, or a negative errno with @err. */
int recorders_start(const struct recording_options *o, struct recorders *r, struct mp_err *err);
/* Has process @pid recorded.  @last_view: recording_options.last_view.  RECORDERS_ENDED follows in each case.  Return: 0 or a
 * negative errno: the process is gone. */
int recorders_attach(const struct recorders *r, pid_t pid, int last_view);
/* Return: 1 with @m; 0: no message is there; or a negative errno: the process is gone. */
int recorders_read(const struct recorders *r, struct recorders_message *m);
/* Ends all recordings, and the process.  Return: 0, or -ESRCH: it was killed, and some processes are not restored. */
int recorders_stop(struct recorders *r);

#endif
