/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a recording holds beside events, as CSV files: one for each kind; and its binaries. */
#ifndef REPORT_EXTRACT_H
#define REPORT_EXTRACT_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "report/unpack.h"

#define EXTRACT_KINDS 7

struct extract_result {
	const char *file[EXTRACT_KINDS]; /* names in the folder; NULL: nothing of that kind */
	uint64_t lines[EXTRACT_KINDS];
	struct unpack_result binaries;
	bool truncated; /* the recording was cut off */
};

/**
 * recording_extract() - write them into the folder @dir, which is made if it is not there
 * Return: 0 with @result filled, or a negative errno with @err.
 */
int recording_extract(const char *path, const char *dir, struct extract_result *result,
		      struct mp_err *err);

#endif
