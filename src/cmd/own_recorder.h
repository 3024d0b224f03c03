/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recorder that memprof top and server start for a process that has none, in a process of its
 * own.  It ends, and leaves the process as it was, also if the command is killed.
 */
#ifndef CMD_OWN_RECORDER_H
#define CMD_OWN_RECORDER_H

#include <stdio.h>
#include <sys/types.h>
#include "control/options.h"

struct own_recorder {
	pid_t pid;	/* of the recorder; 0: there is none */
	pid_t recorded; /* the process */
	char dir[4096]; /* of the recording, which the recorder removes; "": the user keeps it */
	char kept[256]; /* the recording that the user keeps; "": it is removed */
	int quit;	/* an eventfd: the command needs the recording no more */
	FILE *messages; /* what the recorder writes while the terminal shows something else */
};

/**
 * own_recorder_want() - start to record a process, unless a recorder is at work
 * @command: its name, for messages
 * @o: how to record.  Without a path the recording is removed at the end.  Notices and orders need not be set.
 *
 * Waits until it records.
 * Return: 0, with @r without a pid if there was a recorder; or the exit status after it printed why it
 * failed.
 */
int own_recorder_want(const char *command, pid_t pid, const struct recording_options *o,
		      struct own_recorder *r);
/* Ends the recording, and prints what the recorder has to say.  Return: its exit status. */
int own_recorder_end(struct own_recorder *r);

#endif
