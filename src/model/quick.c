/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/quick.h"

#include <errno.h>
#include "model/model.h"

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
