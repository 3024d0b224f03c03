/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --follow-fork and --follow-exec: the follower is a process that only starts recorders and waits
 * for them.  Each followed process has its own recorder, session and recording.  The follower finds
 * forked children by the session block that they inherited.
 */
#ifndef CONTROL_FOLLOW_H
#define CONTROL_FOLLOW_H

#include "cmd/cmd.h"
#include "control/children.h"
#include "inject/find.h"

enum news_kind { NEWS_BEGUN, NEWS_ENDED, NEWS_FAILED };

/* What a recorder reports to the follower through recording_options.news_fd; small enough for an
 * atomic write to a pipe. */
struct recording_news {
	uint8_t kind;	/* enum news_kind */
	uint8_t reason; /* NEWS_ENDED: enum mp_end_reason */
	struct session_id id;
	struct child_recording recording; /* NEWS_BEGUN: pid and path; NEWS_ENDED: all fields */
	struct mp_err why;		  /* NEWS_FAILED: why nothing was recorded */
};

/* Records @pid (or, if 0, starts @argv) and the processes to be followed, until all have ended or
 * the recording is ended.  Return: exit status of the first process's recorder. */
int follow_run(pid_t pid, char *const argv[], const struct recording_options *o);

/* cmd/run.c: starts a program, records it and waits for it.  Return: exit status. */
int launch_and_record(char *const argv[], const struct recording_options *o);

#endif
