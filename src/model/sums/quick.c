/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/quick.h"

#include <errno.h>
#include <stdio.h>
#include "model/model.h"
#include "model/names/names.h"

static int take_totals(struct model *m, const struct mp_totals *t)
{
	m->counts.events = t->events;
	m->sums.total.allocations = t->allocations;
	m->sums.total.allocated_bytes = t->allocated_bytes;
	m->sums.total.frees = t->frees;
	m->sums.total.live_bytes = t->live_bytes;
	m->sums.total.live_blocks = t->live_blocks;
	return 0;
}

static int take_live(struct model *m, uint32_t id, uint64_t bytes, uint64_t blocks)
{
	if (id >= m->stacks.n)
		return -EINVAL;
	m->sums.group[id].live_bytes = bytes;
	m->sums.group[id].live_blocks = blocks;
	return 0;
}

static int take_finish(struct model *m)
{
	m->facts.end_ns = m->facts.finish.end_ns;
	m->sums.peak_bytes = m->facts.finish.peak_live_bytes;
	m->sums.peak_has_culled = true;
	m->sums.peak_blocks = m->facts.finish.peak_live_blocks;
	m->sums.peak_time_ns = m->facts.finish.peak_time_ns;
	m->counts.foreign_frees = m->facts.losses.foreign_frees;
	m->counts.foreign_reallocs = m->facts.losses.foreign_reallocs;
	return 0;
}

static int take_item(struct model *m, const struct mpf_item *it)
{
	int ret;

	switch (it->kind) {
	case MPF_TOTALS:
		return take_totals(m, &it->totals);
	case MPF_LIVE:
		return take_live(m, it->live.id, it->live.bytes, it->live.blocks);
	case MPF_EVENT:
		return -EINVAL;
	default:
		ret = facts_item(m, it);
		return !ret && it->kind == MPF_FINISH ? take_finish(m) : ret;
	}
}

static int read_index(struct model *m, const char *path, struct mp_err *err)
{
	struct mpf_item it;
	int ret;

	if (!mpf_seek_index(m->source.reader))
		return -ENOENT;
	while ((ret = mpf_next(m->source.reader, &it, err)) > 0) {
		ret = take_item(m, &it);
		if (ret)
			return mp_fail(
			    err, MP_EXIT_RECORDING, ret,
			    ret == -ENOMEM ? "out of memory" : "%s: its index is corrupt", path);
	}
	return ret ? ret : m->facts.has_finish ? 0 : -ENOENT;
}

int quick_load(const char *path, struct model *m, struct mp_err *err)
{
	static const struct history_progress no_progress;
	int ret = model_begin(m, path, &no_progress, err);

	if (!ret)
		ret = mpf_open(path, &m->source.reader, &m->info, err);
	if (!ret)
		ret = read_index(m, path, err);
	m->source.quick = true;
	if (ret)
		model_free(m);
	return ret;
}

/* ------------------------------------------------------------------ views -- */

static int take_activity(struct model *m, const struct mp_activity *a)
{
	struct group *g;

	if (a->id >= m->stacks.n)
		return -EINVAL;
	g = &m->sums.group[a->id];
	g->allocations = a->allocations;
	g->allocated_bytes = a->allocated_bytes;
	g->temporary = a->temporary;
	g->temporary_bytes = a->temporary_bytes;
	g->variance_live = a->live_variance;
	m->sums.total.temporary += a->temporary;
	m->sums.total.temporary_bytes += a->temporary_bytes;
	m->sums.total.variance_live += a->live_variance;
	return 0;
}

static int take_thread(struct model *m, const struct mp_activity *a)
{
	struct model_thread *t = tasks_thread(&m->tasks, a->id);

	if (!t)
		return -ENOMEM;
	t->allocations = a->allocations;
	t->allocated_bytes = a->allocated_bytes;
	t->temporary = a->temporary;
	return 0;
}

/* @modules: number of modules in the view so far, which has them in the order of the view before. */
static int take_view_item(struct model *m, const struct mpf_item *it, size_t *modules,
			  uint32_t *from)
{
	uint32_t n;

	switch (it->kind) {
	case MPF_STACK:
		if (*from <= it->stack.id)
			*from = it->stack.id + 1;
		return facts_item(m, it);
	case MPF_MODULE:
		return (*modules)++ < m->facts.modules.n ? 0 : facts_item(m, it);
	case MPF_SYMBOLS: /* the names that an address has are in use */
		return names_find(m->naming.names, it->symbols.pc, &n) ? 0 : facts_item(m, it);
	case MPF_SAMPLE:
		m->facts.samples.n = 0;
		return facts_item(m, it);
	case MPF_ACTIVITY:
		return take_activity(m, &it->activity);
	case MPF_THREAD_ACTIVITY:
		return take_thread(m, &it->activity);
	default:
		return take_item(m, it);
	}
}

/* What has nothing live any more is not in the view. */
static void forget_live(struct model *m)
{
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		m->sums.group[id].live_bytes = m->sums.group[id].live_blocks = 0;
		m->sums.group[id].variance_live = 0;
	}
	m->sums.total.temporary = m->sums.total.temporary_bytes = 0;
	m->sums.total.variance_live = 0;
}

static int read_view(struct model *m, struct mpf_reader *r, uint32_t *from, struct mp_err *err)
{
	size_t modules = 0;
	struct mpf_item it;
	int ret;

	if (!mpf_seek_index(r))
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the view has no index");
	forget_live(m);
	while ((ret = mpf_next(r, &it, err)) > 0) {
		ret = take_view_item(m, &it, &modules, from);
		if (ret)
			return mp_fail(err, MP_EXIT_FAILURE, ret,
				       ret == -ENOMEM ? "out of memory" : "the view is corrupt");
	}
	return ret;
}

int quick_follow(struct model *m, int fd, const char *name, uint32_t *from, struct mp_err *err)
{
	static const struct history_progress no_progress;
	struct mpf_reader *r;
	struct mp_info info;
	char path[64];
	int ret = m->source.path ? 0 : model_begin(m, name, &no_progress, err);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!ret)
		ret = mpf_open(path, &r, &info, err);
	if (ret)
		return ret;
	ret = read_view(m, r, from, err);
	m->source.quick = true;
	/* The first reader owns the strings of info. */
	if (m->source.reader) {
		mpf_reader_free(r);
	} else {
		m->source.reader = r;
		m->info = info;
	}
	return ret;
}
