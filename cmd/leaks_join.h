/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Leaks joined with a recording of the same process: which stack allocated them, when, in which
 * thread.  A block is joined if the recording has one at its address that was live when the
 * snapshot was taken, and of a size that fits.
 */
#ifndef CMD_LEAKS_JOIN_H
#define CMD_LEAKS_JOIN_H

#include <yajl/yajl_gen.h>
#include "leaks/analysis.h"
#include "report/origins.h"

/* Leaked blocks, those held by others included. */
struct join_sum {
	uint64_t count, bytes;
};

struct leak_join {
	pid_t pid;
	char path[4096]; /* of the recording; "": none is joined */
	char why_not[512];
	bool live;	/* its recorder is at work, and is asked to write what it has */
	bool read;	/* what follows is filled */
	struct model m; /* its live sums are those of the leaks */
	bool sampled;
	uint64_t began_ns; /* before the snapshot */
	uint64_t ended_ns; /* before the snapshot; 0: it goes on behind it */
	struct join_sum known, unknown;
	struct join_sum freed; /* after the snapshot, so something led to them: no leaks */
	uint64_t uncertain;    /* so many known ones at most may be later blocks at the address */
};

/**
 * join_find() - which recording there is, before the process is touched
 * @file: the one to take; NULL: that of the recorder at work, if there is one
 *
 * Return: 0 (also when there is none: @j->why_not); -errno with @err: @file is not of this process.
 */
int join_find(struct leak_join *j, const struct target *t, const char *file, struct mp_err *err);

/**
 * join_make() - adds what the recording knows to @a's clusters, and drops what was freed meanwhile
 * Return: 0, also when there is no recording; a negative errno with @err.
 */
int join_make(struct leak_join *j, struct analysis *a, struct mp_err *err);

/* For clusters_suppress(). */
bool join_any_name(void *join, uint32_t stack, bool (*matches)(const char *, const char *),
		   const char *pattern);

/* Values of JSON, for leaks_json(). */
void join_json(void *join, yajl_gen g);
void join_json_stack(void *join, yajl_gen g, uint32_t stack);

void join_free(struct leak_join *j);

#endif
