/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which recordings are merged, and whether they can be: by their beginnings and ends. */
#ifndef RECORD_MERGE_PARTS_H
#define RECORD_MERGE_PARTS_H

#include "formats/file.h"
#include "lib/vec.h"

/* A file. */
struct merge_part {
	const char *path;
	struct mp_info info; /* its texts are copies */
	struct mp_finish finish;
	bool has_finish, truncated;
	uint64_t end_ns; /* in its own time */
};

/* The files of one process, in order. */
struct merge_process {
	uint32_t first, n; /* in merge_parts.part */
	uint64_t shift_ns; /* of its first piece's zero, in the new file */
};

struct merge_parts {
	VEC(struct merge_part) part;	   /* by process, then piece */
	VEC(struct merge_process) process; /* by their start */
};

/* Return: 0 with @p filled, or a negative errno with @err; merge_parts_free() in both cases. */
int merge_parts_look(char *const *paths, uint32_t n, struct merge_parts *p, struct mp_err *err);
void merge_parts_free(struct merge_parts *p);

#endif
