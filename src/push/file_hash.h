/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* process.executable.build_id.htlhash of the files that a process has mapped: their first and last 4096 bytes and their length,
 * hashed by SHA-256.  Source: opentelemetry.io/docs/specs/otel/profiles/mappings. */
#ifndef PUSH_FILE_HASH_H
#define PUSH_FILE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/vec.h"

#define FILE_HASH_TEXT 33

struct model;

struct file_hash {
	char *path;
	char text
	    [FILE_HASH_TEXT]; /* "": the file cannot be read, or is another one now, or belongs to another user */
};

struct file_hashes {
	const struct model *model;
	int root; /* directory of the process; -1: it cannot be opened */
	uint32_t uid;
	VEC(struct file_hash) known;
};

/* @f can be used also after the process has ended.  To be freed by file_hashes_free(). */
void file_hashes_begin(struct file_hashes *f, pid_t pid);
/* Return: 32 digits, valid until the next call, or NULL; @hashes: struct file_hashes; @index: of the model's modules. */
const char *file_hash(void *hashes, size_t index);
void file_hashes_free(struct file_hashes *f);

#endif
