/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recording of a process whose memory was examined, to learn where its blocks were allocated:
 * for memprof leaks and memprof heap. */
#ifndef JOIN_RECORDING_OF_H
#define JOIN_RECORDING_OF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "lib/err.h"
#include "lib/json_gen.h"
#include "model/model.h"

struct recording_of {
	pid_t pid;
	char path[4096]; /* "": there is none */
	char why_not[512];
	bool live; /* its recorder is at work, and is asked to flush */
	bool read; /* the following members are set */
	struct model m;
	bool sampled;
	uint64_t at_ns;	   /* when the snapshot was taken, in the recording's time */
	uint64_t began_ns; /* how long before the snapshot it began */
	uint64_t ended_ns; /* how long before the snapshot it ended; 0: it did not */
};

/**
 * recording_of_find() - find the recording, before the process is touched
 * @file: the recording to use; NULL: the one that a recorder is writing now, if any
 * Return: 0, also if there is none, with the reason in @r->why_not; a negative errno with @err if
 * @file is not a recording of this process.
 */
int recording_of_find(struct recording_of *r, const struct target *t, const char *file,
		      struct mp_err *err);

/**
 * recording_of_read() - read the recording that was found
 * @taken_ns: CLOCK_MONOTONIC at the snapshot
 * Return: 0; a negative errno with @err: it cannot be read, or the recorded process has ended, or
 * executed another program since.
 */
int recording_of_read(struct recording_of *r, uint64_t taken_ns, struct mp_err *err);
/* Writes what @r is, as members of the object that is open. */
void recording_of_json(const struct recording_of *r, yajl_gen g);
void recording_of_free(struct recording_of *r);

#endif
