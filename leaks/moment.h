/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A snapshot of a moment in which no thread is in the middle of changing a heap. */
#ifndef LEAKS_MOMENT_H
#define LEAKS_MOMENT_H

#include "leaks/census.h"
#include "leaks/snapshot.h"

struct moment {
	struct snapshot snapshot;
	struct census census;
	uint32_t snapshots;			    /* how many it took */
	uint64_t longest_pause_ns, longest_wait_ns; /* of those before the last */
	uint64_t walk_ns;			    /* listing its blocks */
};

/**
 * moment_take() - snapshots, until one has heaps that no thread is just changing; at most five
 * A busy process is caught in the middle now and then; a few milliseconds later it is not.  The
 * last one is taken as it is: then its census says what is in doubt.  None is taken after a pause
 * that was longer than is allowed.
 * @max_ms, @plan: as snapshot_take()
 * Return: 0 with @m->snapshot to be ended by snapshot_end() and @m->census to be freed, also when
 * there is no allocator: *@walked has what census_take() returned; or a negative errno with @err,
 * and nothing to be ended.
 */
int moment_take(struct moment *m, struct target *t, const struct snapshot_plan *plan,
		uint64_t max_ms, int *walked, struct mp_err *err);

#endif
