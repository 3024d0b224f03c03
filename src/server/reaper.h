/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends processes without waiting for them: a process that returns gigabytes to the kernel, or that
 * reads from a disk that does not answer, takes long to end, and the server has others to serve.
 */
#ifndef SERVER_REAPER_H
#define SERVER_REAPER_H

#include <sys/types.h>
#include "lib/vec.h"
#include "server/loop.h"

struct dying;

struct reaper {
	struct loop *loop;
	VEC(struct dying *) at; /* killed and still there */
};

/* Kills a child.  The loop notices its end. */
void reaper_kill(struct reaper *r, pid_t pid);
/* Waits a second for those that are still there, and forgets the others. */
void reaper_close(struct reaper *r);

#endif
