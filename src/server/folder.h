/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A folder whose recordings are served, also those that appear while the server runs. */
#ifndef SERVER_FOLDER_H
#define SERVER_FOLDER_H

#include <sys/types.h>
#include <time.h>
#include "lib/vec.h"
#include "server/recordings.h"

/* A file that is not known to be a recording. */
struct folder_file {
	char *name;
	off_t tried; /* its size when it was tried; it is tried again when that has changed */
};

struct folder {
	char *path; /* absolute */
	VEC(struct folder_file) files;
	struct timespec changed; /* when the folder had changed, as it was read */
};

/* Return: 0, or a negative errno: @path is not a folder that can be used. */
int folder_open(const char *path, struct folder *f);
/**
 * folder_look() - add the recordings that have appeared since the last call
 * Those of one call are added in the order in which they were written last.  Costs little if nothing has
 * changed; to be called about once a second.
 */
void folder_look(struct folder *f, struct recordings *r);
void folder_close(struct folder *f);

#endif
