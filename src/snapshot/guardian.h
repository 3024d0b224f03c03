/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A helper process that survives a SIGKILL of memprof.  In that case the kernel kills the copy that
 * was being made or read, and the guardian makes the target reap it, if it is the target's child
 * (attach/copy.h).  If both are killed, the next memprof does that (reap_killed()).
 */
#ifndef SNAPSHOT_GUARDIAN_H
#define SNAPSHOT_GUARDIAN_H

#include <sys/types.h>

#define GUARDIAN_NAME "memprof-guard" /* name of the process, proc_pid_comm(5) */

struct guardian {
	pid_t pid; /* 0: there is no guardian */
	int fd;	   /* pipe whose end shows the guardian that memprof is gone */
};

/* Starts the guardian by fork(), before a copy is made.  If it fails, everything works, but without
 * a guardian. */
void guardian_start(struct guardian *g, pid_t target);
/* Ends the guardian and waits for it. */
void guardian_end(struct guardian *g);

#endif
