/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/tids.h"

#define DIRECT_MAX (1u << 22) /* Linux's PID_MAX_LIMIT; larger ids are searched linearly */

static uint32_t add_tid(struct tid_table *t, uint32_t tid)
{
	return vec_push(&t->tid, tid) ? TIDS_NONE : (uint32_t)t->tid.n - 1;
}

static uint32_t search_all(struct tid_table *t, uint32_t tid)
{
	for (size_t i = 0; i < t->tid.n; i++) {
		if (t->tid.at[i] == tid)
			return (uint32_t)i;
	}
	return add_tid(t, tid);
}

uint32_t tids_search(struct tid_table *t, uint32_t tid)
{
	uint32_t index;

	if (tid >= DIRECT_MAX)
		return search_all(t, tid);
	if (vec_reach(&t->direct, tid))
		return TIDS_NONE;
	index = add_tid(t, tid);
	if (index != TIDS_NONE)
		t->direct.at[tid] = index + 1;
	return index;
}

void tids_free(struct tid_table *t)
{
	vec_free(&t->direct);
	vec_free(&t->tid);
}
