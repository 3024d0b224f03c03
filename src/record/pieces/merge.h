/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Merges several recordings into one.  The pieces of one recording (--rotate; they have the same
 * id) become what one file would have been.  Recordings of several processes are put on a common
 * clock, each block belonging to its process.  Stacks with equal addresses count together, as those
 * of a server's child processes do.
 */
#ifndef RECORD_PIECES_MERGE_H
#define RECORD_PIECES_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

struct merge_result {
	uint32_t processes, pieces; /* pieces: number of input files */
	bool truncated;		    /* an input was cut off; the output is marked so, too */
};

/**
 * recording_merge() - merge @n recordings, given in any order, into the new file @to
 * Refuses what one file cannot represent: pieces with a missing one between them, recordings with
 * different sampling or of different kinds, recordings of one process at different times, and
 * processes with different code at the same addresses.
 * Return: 0, or a negative errno with @err filled; then @to does not exist.
 */
int recording_merge(char *const *paths, uint32_t n, const char *to, struct merge_result *result,
		    struct mp_err *err);

#endif
