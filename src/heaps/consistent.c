/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/consistent.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "inject/stranger.h"

#define TRIES	5
#define WAIT_US 3000

static int try(struct consistent_census *m, struct target *t, const struct snapshot_plan *plan,
	       uint64_t max_ms, int *walked, struct mp_err *err)
{
	uint64_t start;
	int ret = m->snapshots ? snapshot_again(&m->snapshot, max_ms, err)
			       : snapshot_take(&m->snapshot, t, plan, max_ms, err);

	if (ret)
		return ret;
	m->snapshots++;
	start = mono_ns();
	*walked = census_take(&m->census, &m->snapshot.image, err);
	m->walk_ns = mono_ns() - start;
	if (*walked && err->exit == MP_EXIT_NO_ALLOCATOR)
		stranger_append(t->pid, err);
	return 0;
}

int consistent_take(struct consistent_census *m, struct target *t, const struct snapshot_plan *plan,
		    uint64_t max_ms, int *walked, struct mp_err *err)
{
	int ret;

	memset(m, 0, sizeof(*m));
	for (;;) {
		ret = try(m, t, plan, max_ms, walked, err);
		if (ret)
			return ret;
		/* A stopped process, or one that is gone, would not change. */
		if (*walked || !m->census.passing || m->snapshots == TRIES ||
		    m->snapshot.image.torn ||
		    (plan->max_pause_ns && m->snapshot.pause_ns > plan->max_pause_ns))
			break;
		if (m->snapshot.pause_ns > m->longest_pause_ns) {
			m->longest_pause_ns = m->snapshot.pause_ns;
			m->longest_wait_ns = m->snapshot.wait_ns;
		}
		census_free(&m->census);
		usleep(WAIT_US);
	}
	snapshot_settle(&m->snapshot);
	return 0;
}
