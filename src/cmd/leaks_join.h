/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Joins leaks with a recording of the same process: which stack allocated them, when, in which
 * thread.  A block is joined if the recording has a block of a fitting size at its address that was
 * live when the snapshot was taken.
 */
#ifndef CMD_LEAKS_JOIN_H
#define CMD_LEAKS_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "leaks/analysis.h"
#include "lib/err.h"
#include "model/match.h"
#include "model/model.h"

/* Leaked blocks, including those held by other leaked blocks. */
struct join_sum {
	uint64_t count, bytes;
};

struct leak_join {
	pid_t pid;
	char path[4096]; /* of the recording; "": no recording is joined */
	char why_not[512];
	bool live;	/* its recorder is at work, and is asked to flush */
	bool read;	/* the recording was read: the following members are set */
	struct model m; /* its live sums are set to those of the leaks */
	bool sampled;
	uint64_t began_ns; /* how long before the snapshot it began */
	uint64_t ended_ns; /* how long before the snapshot it ended; 0: it did not */
	struct join_sum known, unknown;
	struct join_sum freed; /* after the snapshot: still referenced, so not leaks */
	uint64_t uncertain;    /* at most so many known ones are later blocks */
};

/**
 * join_find() - find the recording, before the process is touched
 * @file: the recording to use; NULL: the one that a recorder is writing now, if any
 *
 * Return: 0, also if there is none, with the reason in @j->why_not; a negative errno with @err if
 * @file is not a recording of this process.
 */
int join_find(struct leak_join *j, const struct target *t, const char *file, struct mp_err *err);

/**
 * join_make() - add what the recording has to @a's clusters, drop blocks freed after the snapshot
 * Return: 0, also if there is no recording; a negative errno with @err.
 */
int join_make(struct leak_join *j, struct analysis *a, struct mp_err *err);

/* Does @matches accept @pattern for any function name of @stack?  For clusters_suppress(); @join:
 * struct leak_join *. */
bool join_any_name(void *join, uint32_t stack, bool (*matches)(const char *, const char *),
		   const char *pattern);

void join_free(struct leak_join *j);

#endif
