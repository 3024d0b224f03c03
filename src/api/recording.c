/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recording that was read, with its groups and stacks. */
#include <errno.h>
#include <stdlib.h>
#include "api/error.h"
#include "api/frames.h"
#include "api/sized.h"
#include "model/filter/filter.h"
#include "model/losses.h"
#include "model/model.h"
#include "model/stack_order.h"

struct memprof_filter {
	struct filter f;
};

struct memprof_recording {
	struct model m;
};

struct memprof_groups {
	const struct model *m;
	uint32_t *stack; /* ids */
	uint32_t n, next;
};

memprof_filter *memprof_filter_new(void)
{
	memprof_filter *f = calloc(1, sizeof(*f));

	if (f)
		filter_init(&f->f);
	return f;
}

int memprof_filter_set(memprof_filter *f, const char *name, const char *value,
		       struct memprof_error *err)
{
	struct mp_err why = {0};
	int ret = filter_set(&f->f, name, value, &why);

	return ret ? api_error(err, &why) : MEMPROF_OK;
}

void memprof_filter_free(memprof_filter *f)
{
	if (f)
		filter_free(&f->f);
	free(f);
}

int memprof_open(const char *path, const memprof_filter *filter, memprof_recording **out,
		 struct memprof_error *err)
{
	const struct model_options o = {.filter = filter ? &filter->f : NULL};
	memprof_recording *r = calloc(1, sizeof(*r));
	struct mp_err why = {0};
	int ret;

	if (!r)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	ret = model_load(path, &o, &r->m, &why);
	if (ret) {
		free(r);
		return api_error(err, &why);
	}
	*out = r;
	return MEMPROF_OK;
}

void memprof_close(memprof_recording *r)
{
	if (r)
		model_free(&r->m);
	free(r);
}

static struct memprof_sums sums_of(const struct group *g)
{
	return (struct memprof_sums){
	    .allocations = g->allocations,
	    .allocated_bytes = g->allocated_bytes,
	    .frees = g->frees,
	    .live_blocks = g->live_blocks,
	    .live_bytes = g->live_bytes,
	    .peak_blocks = g->peak_blocks,
	    .peak_bytes = g->peak_bytes,
	    .temporary = g->temporary,
	    .min_size = g->min_size,
	    .max_size = g->max_size,
	    .first_ns = g->first_ns,
	    .last_ns = g->last_ns,
	    .allocations_error = group_error(g->variance_allocations),
	    .allocated_bytes_error = group_error(g->variance_allocated),
	    .live_blocks_error = group_error(g->variance_blocks),
	    .live_bytes_error = group_error(g->variance_live),
	    .uncertain_blocks = g->uncertain_blocks,
	};
}

void memprof_about(const memprof_recording *r, struct memprof_about *out)
{
	const struct model *m = &r->m;
	struct memprof_about a = {.executable = m->info.executable,
				  .cmdline = m->info.cmdline,
				  .pid = (pid_t)m->info.pid,
				  .stacks = m->stacks.n,
				  .start_unix_ns = m->info.start_unix_ns,
				  .duration_ns = m->facts.end_ns,
				  .sample_interval = m->info.sample_interval,
				  .peak_ns = m->sums.peak_time_ns,
				  .incomplete = m->source.truncated,
				  .sums = sums_of(&m->sums.total)};

	a.sums.peak_bytes = m->sums.peak_bytes;
	a.sums.peak_blocks = m->sums.peak_blocks;
	sized_give(&a, sizeof(a), out);
}

struct memprof_counter memprof_loss(const memprof_recording *r, uint32_t i)
{
	struct model_loss l = model_loss(&r->m, i);

	return (struct memprof_counter){l.name, l.value};
}

int memprof_groups_begin(const memprof_recording *r, int cost, memprof_groups **out,
			 struct memprof_error *err)
{
	static const enum cost costs[] = {
	    [MEMPROF_LIVE_BYTES] = COST_LEAKED,	  [MEMPROF_ALLOCATED_BYTES] = COST_ALLOCATED,
	    [MEMPROF_ALLOCATIONS] = COST_COUNT,	  [MEMPROF_PEAK_BYTES] = COST_PEAK,
	    [MEMPROF_TEMPORARY] = COST_TEMPORARY,
	};
	memprof_groups *g;

	if (cost < 0 || (size_t)cost >= sizeof(costs) / sizeof(costs[0]))
		return api_fail(err, MEMPROF_USAGE, -EINVAL, "there is no cost %d", cost);
	g = calloc(1, sizeof(*g));
	if (g) {
		g->m = &r->m;
		g->stack = stack_order(g->m, costs[cost], &g->n);
	}
	if (!g || !g->stack) {
		free(g);
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	}
	*out = g;
	return MEMPROF_OK;
}

int memprof_groups_next(memprof_groups *g, struct memprof_group *out)
{
	struct memprof_group group;

	if (g->next == g->n)
		return 0;
	group.stack = g->stack[g->next++];
	group.sums = sums_of(&g->m->sums.group[group.stack]);
	sized_give(&group, sizeof(group), out);
	return 1;
}

void memprof_groups_free(memprof_groups *g)
{
	if (g)
		free(g->stack);
	free(g);
}

int memprof_frames_begin(memprof_recording *r, uint32_t stack, memprof_frames **f,
			 struct memprof_error *err)
{
	return frames_begin(&r->m, stack, f, err);
}
