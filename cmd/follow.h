/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --follow-fork and --follow-exec: a process that only starts recorders and waits for them, one
 * for each process, each with its own session and recording.  It finds forked children by the
 * session block that they inherited.
 */
#ifndef CMD_FOLLOW_H
#define CMD_FOLLOW_H

#include "cmd/children.h"
#include "cmd/cmd.h"
#include "inject/family.h"

enum news_kind { NEWS_BEGUN, NEWS_ENDED, NEWS_FAILED };

/* What a recorder tells it through recording_options.news_fd; short enough to be written to a pipe
 * at once. */
struct recording_news {
	uint8_t kind;	/* enum news_kind */
	uint8_t reason; /* NEWS_ENDED: enum mp_end_reason */
	struct session_id id;
	struct child_recording recording; /* NEWS_BEGUN: its pid; NEWS_ENDED: all of it */
	struct mp_err why;		  /* NEWS_FAILED: why nothing was recorded */
};

/* Records @pid (or, if 0, starts @argv) and whom it follows, until all have ended or somebody ends
 * it.  Return: exit status, the first process's. */
int follow_run(pid_t pid, char *const argv[], const struct recording_options *o);

/* cmd/run.c: starts a program, records it, waits for it.  Return: exit status. */
int launch_and_record(char *const argv[], const struct recording_options *o);

#endif
