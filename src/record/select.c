/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/select.h"

#include <fnmatch.h>
#include "attach/proc/procfs.h"
#include "record/aggregator.h"

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
static bool was_paused(const struct aggregator *a)
{
	uint64_t paused = __atomic_load_n(&a->shared->paused, __ATOMIC_RELAXED);

	return (paused & 1) == (a->order->events[a->at].time >= paused >> 1);
}

bool select_leaves_out(struct aggregator *a, struct slot_state *st)
{
	struct proc_status status;

	if (was_paused(a))
		return true;
	if (!a->config->select.nthreads)
		return false;
	if (st->named_tid == st->tid && a->last_ns < st->named_ns + NAME_NS)
		return st->left_out;
	/* A thread that has ended keeps its state; one whose name was never read is left out. */
	if (!proc_status_read(a->config->pid, (pid_t)st->tid, &status))
		st->left_out = !name_matches(&a->config->select, status.name);
	else if (st->named_tid != st->tid)
		st->left_out = true;
	st->named_tid = st->tid;
	st->named_ns = a->last_ns;
	return st->left_out;
}
