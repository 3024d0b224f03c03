/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Extracts what a recording has besides events: a CSV file for each kind of item, and the binaries.
 */
#ifndef EXPORT_EXTRACT_H
#define EXPORT_EXTRACT_H

#include <stdbool.h>
#include <stdint.h>
#include "export/unpack.h"
#include "lib/err.h"

#define EXTRACT_KINDS 7

struct extract_result {
	const char *file[EXTRACT_KINDS]; /* file names in the folder; NULL: no items of that kind */
	uint64_t lines[EXTRACT_KINDS];
	struct unpack_result binaries;
	bool truncated; /* the recording is truncated */
};

/**
 * recording_extract() - write the files into the folder @dir, which is created if missing
 * Return: 0 with @result filled, or a negative errno with @err.
 */
int recording_extract(const char *path, const char *dir, struct extract_result *result,
		      struct mp_err *err);

#endif
