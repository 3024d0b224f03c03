/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the binaries that a recording carries to files. */
#ifndef EXPORT_UNPACK_H
#define EXPORT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

struct unpack_result {
	uint64_t files, bytes;
	uint64_t damaged;    /* chunks from which no file could be made */
	char left_out[1000]; /* which files were left out, and why; or "" */
};

/**
 * unpack_binaries() - write the binaries into the folder "binaries" of @dir, under their paths
 *
 * Whatever the recording contains, nothing is written outside this folder or through a link, and
 * only complete files are written.  An existing file is replaced.  If two binaries have the same
 * path, the later one gets its build id as a suffix.
 * Return: 0 with @result filled, or a negative errno with @err.
 */
int unpack_binaries(const char *recording, const char *dir, struct unpack_result *result,
		    struct mp_err *err);

/* The path in the folder for a binary of @path: without empty components and ".".  Return: false if
 * it would leave the folder, has no name, or is longer than @size. */
bool unpack_path(const char *path, char *out, size_t size);

#endif
