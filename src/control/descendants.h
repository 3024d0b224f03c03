/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The follower's state, and its search for processes that it should record (follow.h). */
#ifndef CONTROL_DESCENDANTS_H
#define CONTROL_DESCENDANTS_H

#include <signal.h>
#include "control/children.h"
#include "control/options.h"
#include "inject/find.h"
#include "lib/vec.h"

/* A process that is recorded or was. */
struct member {
	pid_t pid, recorder; /* recorder 0: it has ended */
	int news;	     /* pipe from the recorder; -1: closed */
	bool root;	     /* the process on the command line, whichever program it runs */
	bool again;	     /* it has been recorded before, with another program */
	bool has_id, over;
	uint32_t failures;
	uint64_t started_ns;
	struct session_id id;
	struct mp_err why; /* set if it failed */
};

struct follow {
	const struct recording_options *o;
	VEC(struct member) members;
	VEC(pid_t) waiting;	     /* children to be recorded, oldest first */
	VEC(struct session_id) left; /* of members that are gone; others can still carry them */
	VEC(pid_t) seen;	     /* examined, and not to be followed */
	struct children children;
	sigset_t mask;		 /* before follow_run() changed it */
	uint32_t count;		 /* recordings so far */
	int signals, status;	 /* status: that of the first recorder */
	char before[CHILD_PATH]; /* the recording of that process's program before the exec */
	int again_status;	 /* of the last recorder of a later program of the same process */
	bool ending, again;	 /* again: a process could not be judged */
	uint64_t looked_ns;
	pid_t newest; /* the newest process or thread at the last scan */
	/*
	 * No attempt to attach before this time.  If children live shorter than attaching takes,
	 * constant attempts would only slow the machine down.
	 */
	uint64_t rest_until_ns;
	bool youngest; /* attach to the youngest waiting child next; else to the oldest */
};

/* Whether the process exists, and a thread of it lives. */
bool process_is_alive(pid_t pid);

/* Return: 1: to be followed; 0: not related; -1: to be examined again. */
int is_followed(const struct follow *f, pid_t pid);

/* Whether find_descendants() should be called: a process was created, or the last call is too old.
 */
bool scan_is_due(struct follow *f, uint64_t now);

/* Scans all processes: adds those to be followed to f->waiting, and forgets members that are over
 * and gone. */
void find_descendants(struct follow *f);

#endif
