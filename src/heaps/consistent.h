/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Takes a snapshot of a moment in which no thread is in the middle of changing a heap. */
#ifndef HEAPS_CONSISTENT_H
#define HEAPS_CONSISTENT_H

#include "heaps/census.h"
#include "snapshot/snapshot.h"

struct consistent_census {
	struct snapshot snapshot;
	struct census census;
	uint32_t snapshots;			    /* how many were taken */
	uint64_t longest_pause_ns, longest_wait_ns; /* of the snapshots before the last one */
	uint64_t walk_ns;			    /* time spent to list its blocks */
};

/**
 * consistent_take() - take snapshots until one has no heap that a thread is changing; at most five
 * A snapshot of a busy process sometimes finds a thread in the middle of a change; some
 * milliseconds later it does not.  The fifth snapshot is used as it is, and its census says what is
 * in doubt.  No further one is taken after a pause longer than allowed.
 * @max_ms, @plan: as snapshot_take()
 * @walked: set to what census_take() returned
 * Return: 0, also if there is no allocator; then end @m->snapshot by snapshot_end() and free
 * @m->census.  Or a negative errno with @err, and nothing to end.
 */
int consistent_take(struct consistent_census *m, struct target *t, const struct snapshot_plan *plan,
		    uint64_t max_ms, int *walked, struct mp_err *err);

#endif
