/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/at_time.h"

#include <errno.h>
#include "model/filter/selection.h"
#include "model/model.h"
#include "model/sums/totals.h"

struct sums_at {
	struct totals totals;
	struct model m; /* only what model/sums/totals.c fills */
	uint64_t at_ns;
};

static int on_event(void *ctx, const struct mp_event *ev)
{
	struct sums_at *s = ctx;

	return totals_time(&s->totals,
			   ev->time_ns > s->totals.now_ns ? ev->time_ns : s->totals.now_ns);
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct sums_at *s = ctx;
	const struct selection *sel = s->m.source.selection;
	struct mp_culled part;
	uint64_t unjudged;

	if (it->kind != MPF_CULLED || it->culled.last_ns > s->at_ns)
		return 0;
	if (sel)
		part = selection_part(sel, &it->culled, &unjudged);
	else
		part = it->culled;
	return part.blocks ? totals_culled(&s->totals, &part) : 0;
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	return totals_allocated(&((struct sums_at *)ctx)->totals, b);
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	return totals_ended(&((struct sums_at *)ctx)->totals, b, by, how);
}

int at_time_groups(const struct model *m, uint64_t at_ns, struct group **groups, struct mp_err *err)
{
	struct sums_at s = {.at_ns = at_ns};
	struct history_sink sink = {.item = on_item,
				    .event = on_event,
				    .allocated = on_allocated,
				    .ended = on_ended,
				    .ctx = &s};
	struct history_until until = {.time_ns = at_ns};
	int ret = 0;

	s.m.info = m->info;
	s.m.source.selection = m->source.selection;
	s.m.stacks.n = m->stacks.n;
	s.m.facts.end_ns = at_ns;
	s.m.sums.group = calloc(m->stacks.n, sizeof(*s.m.sums.group));
	totals_init(&s.totals, &s.m);
	if (!s.m.sums.group)
		ret = -ENOMEM;
	/* At time 0 nothing was allocated yet. */
	if (!ret && at_ns)
		ret = model_replay(m, &sink, &until, err);
	if (!ret)
		ret = totals_close(&s.totals);
	if (ret == -ENOMEM)
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	vec_free(&s.m.tasks.threads);
	vec_free(&s.m.sums.timeline);
	shapes_free(&s.m.sums.shapes);
	tids_free(&s.m.tasks.tids);
	if (ret)
		free(s.m.sums.group);
	else
		*groups = s.m.sums.group;
	return ret;
}
