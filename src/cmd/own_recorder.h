/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recorder that memprof top starts for a process that has none, in a process of its own.  It
 * ends, and leaves the process as it was, also if top is killed.
 */
#ifndef CMD_OWN_RECORDER_H
#define CMD_OWN_RECORDER_H

#include <stdio.h>
#include <sys/types.h>

struct own_recorder {
	pid_t pid;	/* of the recorder; 0: there is none */
	pid_t recorded; /* the process */
	char dir[4096]; /* of the recording, which the recorder removes; "": the user keeps it */
	char kept[256]; /* the recording that the user keeps; "": it is removed */
	FILE *messages; /* what the recorder writes while the terminal shows something else */
};

/**
 * own_recorder_start() - start to record a process
 * @output: the recording, a pattern as for attach -o; NULL: one that is removed at the end
 *
 * Waits until it records.
 * Return: 0; or the exit status of attach after it printed why it failed.
 */
int own_recorder_start(pid_t pid, const char *output, struct own_recorder *r);
/* Ends the recording, and prints what the recorder has to say.  Return: its exit status. */
int own_recorder_end(struct own_recorder *r);

#endif
