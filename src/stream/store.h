/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The folder in which received recordings are, one file for each id. */
#ifndef STREAM_STORE_H
#define STREAM_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "lib/vec.h"
#include "stream/wire.h"

struct stored {
	uint8_t id[WIRE_ID];
	char *name;
	int fd; /* -1: no connection sends it */
	uint64_t bytes;
	bool complete;
};

struct store {
	int dir;
	int list; /* of ids and names, which is locked as long as the folder is used */
	VEC(struct stored *) at;
};

/**
 * store_open() - use a folder, which is made with mode 0700 if there is none
 * Recordings that were begun there can be continued.  A folder is used by one process at a time.
 * Return: 0, or a negative errno with @err.
 */
int store_open(const char *path, struct store *s, struct mp_err *err);
void store_close(struct store *s);
/**
 * store_begin() - open the file of a recording to append to it
 * @name: what it should be called if it is new, from store_clean_name()
 * @offset: of the first byte that can follow
 * @has: set to the bytes that the file has, 0 if there is none
 * Return: 0; -ESTALE: that is less than @offset; or another negative errno.
 */
int store_begin(struct store *s, const uint8_t id[WIRE_ID], const char *name, uint64_t offset,
		struct stored **file, uint64_t *has);
/* Appends; after an error file->bytes says how far it came.  Return: 0 or a negative errno. */
int store_append(struct stored *file, const void *bytes, size_t n);
/* The recording is complete: waits until it is on the disk.  Return: 0 or a negative errno. */
int store_complete(struct store *s, struct stored *file);
/* Deletes the file, and frees @file. */
void store_remove(struct store *s, struct stored *file);
/* Closes the file: no connection sends it now. */
void store_pause(struct stored *file);
/* Makes a file name of @n bytes as doc/streaming.md says.  @clean: room for WIRE_NAME + 1 bytes. */
void store_clean_name(const uint8_t *name, size_t n, char *clean);

#endif
