/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The leaks of a process, with their stacks if it is recorded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "api/apart.h"
#include "api/error.h"
#include "api/frames.h"
#include "api/modes.h"
#include "api/sized.h"
#include "attach/target.h"
#include "join/leaks_join.h"

struct memprof_leaks {
	struct memprof_leaks_options o;
	struct analysis a;
	struct leak_join j;
	size_t next; /* index in a.clusters */
};

/* Return: as analysis_run(). */
static int analyse(struct memprof_leaks *l, struct target *t, struct mp_err *err)
{
	const struct memprof_leaks_options *o = &l->o;
	const struct analysis_options ao = {.max_pause_ms = o->max_pause_ms,
					    .confirm = o->confirm ? o->confirm : 1,
					    .interval_ms = o->interval_ms ? o->interval_ms
									  : ANALYSIS_INTERVAL_MS,
					    .content = !o->no_content};
	struct snapshot_plan plan;
	int ret = recording_of_find(&l->j.r, t, o->recording, err);

	if (!ret)
		ret = mode_plan(&plan, t, o->mode, o->max_pause_ms, err);
	if (!ret)
		ret = analysis_run(&l->a, t, &plan, &ao, err);
	return ret ? target_ask_again(t, ret, err) : 0;
}

/* Adds the stacks.  Without a recording that was asked for, there are none. */
static int join_recording(struct memprof_leaks *l, struct mp_err *err)
{
	int ret = join_make(&l->j, &l->a, err);

	if (!ret || l->o.recording)
		return ret;
	snprintf(l->j.r.why_not, sizeof(l->j.r.why_not), "%s", err->what);
	join_free(&l->j);
	return 0;
}

static int find_leaks(struct target *t, void *arg, struct mp_err *err)
{
	int ret = analyse(arg, t, err);

	return ret ? ret : join_recording(arg, err);
}

int memprof_leaks_find(pid_t pid, const struct memprof_leaks_options *o, memprof_leaks **out,
		       struct memprof_error *err)
{
	memprof_leaks *l = calloc(1, sizeof(*l));
	struct mp_err why = {0};
	int ret;

	if (!l)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	ret = sized_take(o, &l->o, sizeof(l->o), &why);
	if (!ret)
		ret = apart_run(pid, find_leaks, l, &why);
	l->o.recording = NULL; /* the caller's */
	if (ret) {
		memprof_leaks_free(l);
		return mode_error(err, ret, &why);
	}
	*out = l;
	return MEMPROF_OK;
}

void memprof_leaks_free(memprof_leaks *l)
{
	if (!l)
		return;
	join_free(&l->j);
	analysis_free(&l->a);
	free(l);
}

void memprof_leaks_about(const memprof_leaks *l, struct memprof_leaks_about *out)
{
	const struct memprof_leaks_about about = {
	    .live_blocks = l->a.live_count,
	    .live_bytes = l->a.live_bytes,
	    .leaked_blocks = l->a.leaks.total_count,
	    .leaked_bytes = l->a.leaks.total_bytes,
	    .pause_ns = l->a.longest_pause_ns,
	    .exact = l->a.census.exact,
	    .no_stacks = l->j.r.read ? NULL : l->j.r.why_not,
	};

	sized_give(&about, sizeof(about), out);
}

int memprof_leaks_next(memprof_leaks *l, struct memprof_leak *out)
{
	const struct cluster *c;

	if (l->next == l->a.clusters.list.n) {
		l->next = 0;
		return 0;
	}
	c = &l->a.clusters.list.at[l->next++];
	sized_give(&(struct memprof_leak){.type = c->type,
					  .preview = c->preview[0] ? c->preview : NULL,
					  .block_size = c->size,
					  .count = c->count,
					  .bytes = c->bytes,
					  .indirect_count = c->indirect_count,
					  .indirect_bytes = c->indirect_bytes,
					  .example = c->samples ? c->sample[0] : 0,
					  .stack = c->source.stack,
					  .thread = c->source.tid,
					  .age_ns = c->source.age_ns},
		   sizeof(*out), out);
	return 1;
}

int memprof_leaks_frames(memprof_leaks *l, uint32_t stack, memprof_frames **f,
			 struct memprof_error *err)
{
	return frames_begin(&l->j.r.m, l->j.r.read ? stack : 0, f, err);
}
