/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Joins leaks with a recording of the same process: which stack allocated them, when, in which
 * thread.  A block is joined if the recording has a block of a fitting size at its address that was
 * live when the snapshot was taken.
 */
#ifndef JOIN_LEAKS_JOIN_H
#define JOIN_LEAKS_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include "join/recording_of.h"
#include "leaks/analysis.h"
#include "lib/err.h"
#include "model/match.h"

/* Leaked blocks, including those held by other leaked blocks. */
struct join_sum {
	uint64_t count, bytes;
};

struct leak_join {
	struct recording_of r; /* with .read the following members are set; its live sums are those
				* of the leaks */
	struct join_sum known, unknown;
	struct join_sum freed; /* after the snapshot: still referenced, so not leaks */
	uint64_t uncertain;    /* at most so many known ones are later blocks */
};

/**
 * join_make() - add what the recording has to @a's clusters, drop blocks freed after the snapshot
 * Return: 0, also if there is no recording; a negative errno with @err.
 */
int join_make(struct leak_join *j, struct analysis *a, struct mp_err *err);

/* Does @matches accept @pattern for any function name of @stack?  For clusters_suppress(); @join:
 * struct leak_join *. */
bool join_any_name(void *join, uint32_t stack, bool (*matches)(const char *, const char *),
		   const char *pattern);

void join_free(struct leak_join *j);

#endif
