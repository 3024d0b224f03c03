/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/select.h"

#include <fnmatch.h>
#include "attach/procfs.h"
#include "record/internal.h"

/* Names are read again after this, since threads set them after their start */
#define NAME_NS 1000000000u

static bool name_matches(const struct select_config *s, const char *name)
{
	for (uint32_t i = 0; i < s->nthreads; i++) {
		if (!fnmatch(s->thread[i], name, 0))
			return true;
	}
	return false;
}

/* Return: whether recording was paused at the time of the current event, which can be earlier than
 * the last change. */
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
	/* A thread that has ended keeps its state; one whose name was never read is left out. */
	if (!proc_status_read(r->config.pid, (pid_t)st->tid, &status))
		st->left_out = !name_matches(&r->config.select, status.name);
	else if (st->named_tid != st->tid)
		st->left_out = true;
	st->named_tid = st->tid;
	st->named_ns = r->last_ns;
	return st->left_out;
}
