/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --follow-fork, --follow-exec and memprof run: the follower is a process that only starts recorders and waits
 * for them.  Each followed process has its own recorder, session and recording.  The follower finds
 * forked children by the session block that they inherited.
 */
#ifndef CONTROL_FOLLOW_H
#define CONTROL_FOLLOW_H

#include <sys/types.h>
#include "control/options.h"

/* Records @pid (or, if 0, starts @argv) and the processes to be followed, until all have ended or
 * the recording is ended.  Return: as recording_run() or recording_launch() of the first process,
 * or the exit status of the recorder of a later program of that process, if that failed. */
int follow_run(pid_t pid, char *const argv[], const struct recording_options *o);

#endif
