/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recorder in a process of its own, which memprof starts: attach --background, top. */
#ifndef CMD_BACKGROUND_H
#define CMD_BACKGROUND_H

#include <stdbool.h>
#include <sys/types.h>

struct recording_options;
struct target;

/* Does the recording follow forks or execs? */
bool record_follows(const struct recording_options *o);
/* Records until the end of the recording.  Return: the exit status after it printed errors. */
int record(struct target *t, const struct recording_options *o);

/* To be called by the child: takes it out of the terminal's session, with /dev/null as its input and
 * output. */
void background_leave_terminal(void);
/**
 * background_wait() - wait until a child records
 * @recorder: the child
 * @pid: the process that it records
 * @follows: record_follows()
 *
 * Return: true; false: the child has ended, with @status as its exit status.
 */
bool background_wait(pid_t recorder, pid_t pid, bool follows, int *status);

#endif
