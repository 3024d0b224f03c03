/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process beside memprof that outlives a SIGKILL of it: then the kernel kills the copy that was
 * being made or read, and the guardian has the target reap it, if it is the target's child
 * (attach/copy.h).  Should both be killed, the next memprof does that (snapshot_clear()).
 */
#ifndef LEAKS_GUARDIAN_H
#define LEAKS_GUARDIAN_H

#include <sys/types.h>

#define GUARDIAN_NAME "memprof-guard" /* of the process, proc_pid_comm(5) */

struct guardian {
	pid_t pid; /* 0: there is none */
	int fd;	   /* it sees that memprof is gone by the end of this pipe */
};

/* Before a copy is made, in a program of one thread.  Without a guardian all goes on as well. */
void guardian_start(struct guardian *g, pid_t target);
/* All is in order: it ends, and was waited for on return. */
void guardian_end(struct guardian *g);

#endif
