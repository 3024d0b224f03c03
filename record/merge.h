/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Several recordings as one.  The pieces of one recording (--rotate; they have one id) become what
 * they would have been in one file.  Recordings of several processes stand beside each other by the
 * clock, each block in its process; stacks that are equal to the address count together, as those
 * of a server's children are.
 */
#ifndef RECORD_MERGE_H
#define RECORD_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

struct merge_result {
	uint32_t processes, pieces; /* pieces: files in all */
	bool truncated;		    /* one of them was cut off; so is the new one */
};

/**
 * recording_merge() - write @n recordings to the new file @to, in any order
 *
 * Refused is what is not true in one file: pieces with one missing between them, recordings that
 * sample differently or are of other things, of one process at different times, or of processes
 * with different code at the same addresses.
 * Return: 0, or a negative errno with @err filled; then there is no new file.
 */
int recording_merge(char *const *paths, uint32_t n, const char *to, struct merge_result *result,
		    struct mp_err *err);

#endif
