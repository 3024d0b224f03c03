/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the headers and ends of the recordings to be merged, sorts them and checks that they can
 * be merged. */
#ifndef RECORD_PIECES_MERGE_PARTS_H
#define RECORD_PIECES_MERGE_PARTS_H

#include "formats/file.h"
#include "lib/vec.h"

/* One input file. */
struct merge_part {
	const char *path;
	struct mp_info info; /* its strings are owned copies */
	struct mp_finish finish;
	bool has_finish, truncated;
	uint64_t end_ns; /* in the file's own time */
};

/* The files of one process, in order. */
struct merge_process {
	uint32_t first, n; /* indices in merge_parts.part */
	uint64_t shift_ns; /* time 0 of its first piece, in the new file */
};

struct merge_parts {
	VEC(struct merge_part) part;	   /* by process, then piece */
	VEC(struct merge_process) process; /* in order of their start */
};

/* Return: 0 with @p filled, or a negative errno with @err; merge_parts_free() in both cases. */
int merge_parts_look(char *const *paths, uint32_t n, struct merge_parts *p, struct mp_err *err);
void merge_parts_free(struct merge_parts *p);

#endif
