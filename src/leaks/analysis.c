/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/analysis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/signal_stack.h"
#include "heaps/consistent.h"
#include "leaks/graph_take.h"
#include "leaks/python/python_garbage.h"
#include "leaks/growth/sightings.h"

#define STOP_MS 5000 /* for all threads to stop, if no limit is given */

/* Finds roots and edges: everything that needs the whole memory. */
static int build(struct analysis *a, struct image *img, struct mp_err *err)
{
	uint64_t start = mono_ns();
	int ret;

	a->live_count = a->census.blocks.n;
	a->live_bytes = census_live_bytes(&a->census);
	ret = graph_take(&a->graph, img, &a->census, false, &a->cover, err);
	a->scan_ns = mono_ns() - start;
	return ret;
}

static int mark(struct analysis *a, struct image *img, struct mp_err *err)
{
	uint64_t start = mono_ns();
	int ret = mark_leaks(&a->graph, &a->leaks);

	if (!ret)
		ret = python_garbage(&a->leaks, &a->graph, img);
	a->mark_ns = mono_ns() - start;
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to mark %u blocks", a->graph.n)
		   : 0;
}

static bool could_be_signal_stack(const struct analysis *a)
{
	for (uint32_t b = 0; b < a->graph.n && a->leaks.total_count; b++) {
		if (a->leaks.owner[b] && a->graph.block[b].size >= SIGNAL_STACK_LEAST)
			return true;
	}
	return false;
}

static int add_signal_stacks(struct graph *g, const struct signal_stacks *found)
{
	vec_for_each (&found->list, s) {
		const struct root root = {
		    .block = index_search(&g->index, s->start), .tid = s->tid, .kind = ROOT_KERNEL};

		if (root.block != INDEX_NONE && vec_push(&g->roots, root))
			return -ENOMEM;
	}
	return 0;
}

/* Asks for signal stacks only if there is need: each thread has to be stopped for it. */
static int mark_signal_stacks(struct analysis *a, struct snapshot *s, struct mp_err *err)
{
	struct signal_stacks found;
	int ret;

	if (!could_be_signal_stack(a))
		return 0;
	ret = snapshot_ask(s, &found);
	a->cover.signal_stacks = (uint32_t)found.list.n;
	if (!ret)
		ret = add_signal_stacks(&a->graph, &found);
	signal_stacks_free(&found);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the signal stacks");
	if (a->cover.signal_stacks) {
		leaks_free(&a->leaks);
		ret = mark(a, &s->image, err);
	}
	if (!ret && could_be_signal_stack(a))
		a->cover.unasked = found.unknown;
	return ret;
}

static int describe(struct analysis *a, struct image *img, const struct analysis_options *o,
		    struct mp_err *err)
{
	int ret = clusters_make(&a->clusters, &a->graph, &a->leaks, img, o->content);

	if (!ret && o->why)
		ret = why_explain(&a->why, &a->graph, img, o->why);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the report") : 0;
}

int analysis_of_image(struct analysis *a, struct image *img, const struct analysis_options *o,
		      struct mp_err *err)
{
	uint64_t start = mono_ns();
	int ret = census_take(&a->census, img, err);

	a->walk_ns = mono_ns() - start;
	if (!ret)
		ret = build(a, img, err);
	if (!ret)
		ret = mark(a, img, err);
	if (!ret && could_be_signal_stack(a))
		a->cover.unasked = (uint32_t)img->threads.n;
	if (!ret)
		ret = describe(a, img, o, err);
	return ret;
}

/* Frees the results of one snapshot, except for clusters and counters. */
static void forget(struct analysis *a)
{
	graph_free(&a->graph);
	leaks_free(&a->leaks);
	census_free(&a->census);
}

/* Examines one snapshot.  @seen: leaks of the snapshots before, replaced by those that all have. */
static int examine_snapshot(struct analysis *a, struct snapshot *s,
			    const struct analysis_options *o, uint32_t round,
			    struct sightings *seen, struct mp_err *err)
{
	struct image *img = &s->image;
	struct sightings now = {0};
	int ret = build(a, img, err);

	if (!ret)
		ret = mark(a, img, err);
	if (!ret)
		ret = mark_signal_stacks(a, s, err);
	if (!ret && o->confirm > 1)
		ret = sightings_take(&now, &a->graph, &a->leaks, img);
	if (!ret && round)
		ret = sightings_confirm(&a->leaks, &a->graph, seen, &now);
	if (!ret && round && round + 1 < o->confirm) {
		sightings_free(&now);
		ret = sightings_take(&now, &a->graph, &a->leaks, img);
	}
	sightings_free(seen);
	*seen = now;
	if (!ret && round + 1 >= o->confirm)
		ret = describe(a, img, o, err);
	return ret;
}

/* @wait_ns: 0 if it was not measured. */
static void longest(struct analysis *a, uint64_t pause_ns, uint64_t wait_ns)
{
	if (pause_ns <= a->longest_pause_ns)
		return;
	a->longest_pause_ns = pause_ns;
	a->longest_wait_ns = wait_ns;
}

static int one_round(struct analysis *a, struct target *t, const struct snapshot_plan *plan,
		     const struct analysis_options *o, uint32_t round, struct sightings *seen,
		     struct mp_err *err)
{
	struct mp_err end_err = {0};
	struct consistent_census m;
	int ret, end, walked;

	ret =
	    consistent_take(&m, t, plan, o->max_pause_ms ? o->max_pause_ms : STOP_MS, &walked, err);
	longest(a, m.longest_pause_ns, m.longest_wait_ns);
	if (ret)
		return ret;
	a->snapshots += m.snapshots;
	a->walk_ns = m.walk_ns;
	a->threads = (uint32_t)m.snapshot.image.threads.n;
	a->census = m.census;
	ret = walked ? walked : examine_snapshot(a, &m.snapshot, o, round, seen, err);
	a->taken_ns = m.snapshot.taken_ns;
	a->copy_ns = mono_ns() - a->taken_ns;
	end = snapshot_end(&m.snapshot, &end_err);
	a->pause_ns = m.snapshot.pause_ns;
	a->plan.mode = m.snapshot.plan.mode;
	longest(a, a->pause_ns, m.snapshot.wait_ns);
	longest(a, m.snapshot.other_pause_ns, 0);
	if (end == -ESRCH)
		a->target_gone = true;
	else if (end && !ret) {
		ret = end;
		if (err)
			*err = end_err;
	}
	return ret;
}

static void wait_for(uint64_t ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1000),
				.tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* The pause was longer than predicted, and would be again. */
static int stop_no_more(const struct analysis *a, const struct target *t, struct mp_err *err)
{
	char advice[160];

	snapshot_advice(&a->plan, t, a->longest_pause_ns, advice, sizeof(advice));
	return mp_fail(err, MP_EXIT_FAILURE, -ETIME,
		       "the pause was %.1f ms, and --max-pause is %" PRIu64
		       " ms, so process %d is not stopped again; %s",
		       (double)a->longest_pause_ns / 1e6, a->plan.max_pause_ns / 1000000, t->pid,
		       advice);
}

int analysis_run(struct analysis *a, struct target *t, const struct snapshot_plan *plan,
		 const struct analysis_options *o, struct mp_err *err)
{
	struct sightings seen = {0};
	char advice[160];
	int ret = 0;

	memset(a, 0, sizeof(*a));
	a->pid = t->pid;
	a->plan = *plan;
	memcpy(a->name, t->status.name, sizeof(a->name));
	if (proc_exe(t->pid, a->exe, sizeof(a->exe)))
		a->exe[0] = 0;
	if (plan->max_pause_ns && plan->pause_ns > plan->max_pause_ns) {
		snapshot_advice(plan, t, plan->pause_ns, advice, sizeof(advice));
		return mp_fail(err, MP_EXIT_FAILURE, -ETIME,
			       "the pause is predicted to be %.1f ms, and --max-pause is %" PRIu64
			       " ms; process %d was left alone; %s",
			       (double)plan->pause_ns / 1e6, o->max_pause_ms, t->pid, advice);
	}
	for (uint32_t round = 0; round < o->confirm && !ret && !a->target_gone; round++) {
		if (round) {
			forget(a);
			wait_for(o->interval_ms);
		}
		ret = one_round(a, t, plan, o, round, &seen, err);
		a->overrun = plan->max_pause_ns && a->longest_pause_ns > plan->max_pause_ns;
		if (!ret && a->overrun && round + 1 < o->confirm)
			ret = stop_no_more(a, t, err);
		if (!ret && a->target_gone && round + 1 < o->confirm)
			ret = mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
				      "process %d ended before its leaks were confirmed", t->pid);
	}
	sightings_free(&seen);
	return ret;
}

void analysis_free(struct analysis *a)
{
	forget(a);
	clusters_free(&a->clusters);
	why_free(&a->why);
}
