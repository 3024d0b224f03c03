/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The binaries that a recording carries, as files. */
#ifndef REPORT_UNPACK_H
#define REPORT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

struct unpack_result {
	uint64_t files, bytes;
	uint64_t damaged;    /* chunks that no file could be made of */
	char left_out[1000]; /* which, and why; "" */
};

/**
 * unpack_binaries() - write them into the folder binaries of @dir, each where it was from
 *
 * Nothing is written outside of that folder or through a link, whatever the recording says, and
 * only files that are whole.  A file of the same name is replaced; where two have one path the
 * later one also gets its build id as a suffix. Return: 0 with @result filled, or a negative errno
 * with @err.
 */
int unpack_binaries(const char *recording, const char *dir, struct unpack_result *result,
		    struct mp_err *err);

/* Where a binary of @path goes: its names without those that stand for nothing.  Return: false: it
 * would leave the folder, has no name, or is longer than @size. */
bool unpack_path(const char *path, char *out, size_t size);

#endif
