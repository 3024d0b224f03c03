/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --follow-fork and --follow-exec: a process that only starts recorders and waits for them, one
 * for each process, each with its own session and recording.  It finds forked children by the
 * session block that they inherited.
 */
#ifndef CMD_FOLLOW_H
#define CMD_FOLLOW_H

#include "cmd/cmd.h"
#include "inject/family.h"

/* What a recorder tells it through recording_options.news_fd. */
struct recording_news {
	uint8_t ended;	/* 0: it records now; 1: it is over */
	uint8_t reason; /* enum mp_end_reason, when it is over */
	pid_t pid;	/* of the recorded process */
	struct session_id id;
};

/* Records @pid (or, if 0, starts @argv) and whom it follows, until all have ended or somebody ends
 * it.  Return: exit status, the first process's. */
int follow_run(pid_t pid, char *const argv[], const struct recording_options *o);

/* cmd/run.c: starts a program, records it, waits for it.  Return: exit status. */
int launch_and_record(char *const argv[], const struct recording_options *o);

#endif
