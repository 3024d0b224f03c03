/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/select.h"

#include <fnmatch.h>
#include "attach/procfs.h"
#include "record/internal.h"

#define NAME_NS 1000000000u /* threads get their names after their start: looked at again */

static bool name_matches(const struct selection *s, const char *name)
{
	for (uint32_t i = 0; i < s->nthreads; i++) {
		if (!fnmatch(s->thread[i], name, 0))
			return true;
	}
	return false;
}

/* At the time of the event at hand: it may have waited in its ring since before the last change. */
static bool was_paused(const struct recorder *r)
{
	uint64_t paused = __atomic_load_n(&r->paused, __ATOMIC_RELAXED);

	return (paused & 1) == (r->order.events[r->at].time >= paused >> 1);
}

bool select_leaves_out(struct recorder *r, struct slot_state *st)
{
	struct proc_status status;

	if (was_paused(r))
		return true;
	if (!r->config.select.nthreads)
		return false;
	if (st->named_tid == st->tid && r->last_ns < st->named_ns + NAME_NS)
		return st->left_out;
	/* A thread that ended keeps what it was judged as; one that was never seen is left out. */
	if (!proc_status_read(r->config.pid, (pid_t)st->tid, &status))
		st->left_out = !name_matches(&r->config.select, status.name);
	else if (st->named_tid != st->tid)
		st->left_out = true;
	st->named_tid = st->tid;
	st->named_ns = r->last_ns;
	return st->left_out;
}
