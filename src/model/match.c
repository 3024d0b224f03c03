/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/match.h"

#include <string.h>
#include "formats/event.h"
#include "model/model.h"

struct lookup {
	const struct model *m;
	struct match *list;
	size_t n;
	uint64_t at_ns;
};

static struct match *find_match(const struct lookup *s, uint64_t addr)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->list[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n && s->list[low].addr == addr ? &s->list[low] : NULL;
}

/* For glibc's blocks the recording has the usable size; for others only the requested one. */
static bool fits(const struct model *m, const struct model_block *b, const struct match *o)
{
	bool exact = b->hook < m->facts.hooks.n && m->facts.hooks.at[b->hook].has_chunks;

	return exact ? b->usable == o->usable : b->size <= o->usable;
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	const struct lookup *s = ctx;
	struct match *o = find_match(s, b->addr);

	if (!o || b->time_ns > s->at_ns)
		return 0;
	o->state = fits(s->m, b, o) ? MATCH_KNOWN : MATCH_UNKNOWN;
	o->size = b->size;
	o->time_ns = b->time_ns;
	o->stack = b->stack < s->m->stacks.n ? b->stack : 0;
	o->tid = b->tid;
	o->older = b->flags & EV_F_CARRIED && !(s->m->info.live_only && b->time_ns);
	return 0;
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	const struct lookup *s = ctx;
	struct match *o = find_match(s, b->addr);

	if (!o || o->state != MATCH_KNOWN || o->time_ns != b->time_ns)
		return 0;
	if (by->time_ns <= s->at_ns)
		o->state = MATCH_UNKNOWN;
	else if (how != BLOCK_LOST)
		o->state = MATCH_FREED;
	return 0;
}

int match_find(const struct model *m, struct match *list, size_t n, uint64_t at_ns,
	       struct mp_err *err)
{
	struct lookup s = {m, list, n, at_ns};
	struct history_sink sink = {.allocated = on_allocated, .ended = on_ended, .ctx = &s};

	for (size_t i = 0; i < n; i++)
		list[i].state = MATCH_UNKNOWN;
	return n ? model_replay(m, &sink, NULL, err) : 0;
}

void match_weigh(struct model *m, const struct match *list, size_t n)
{
	memset(m->sums.group, 0, m->stacks.n * sizeof(*m->sums.group));
	memset(&m->sums.total, 0, sizeof(m->sums.total));
	/* These blocks were counted one by one, even if the recording has only estimates. */
	m->info.sample_interval = 0;
	m->facts.losses.thinned = 0;
	m->sums.thinned.n = 0;
	for (size_t i = 0; i < n; i++) {
		bool known = list[i].state == MATCH_KNOWN;
		struct group *g = &m->sums.group[known ? list[i].stack : 0];

		g->live_blocks++;
		g->live_bytes += known ? list[i].size : list[i].usable;
		g->live_usable += list[i].usable;
	}
	for (uint32_t i = 0; i < m->stacks.n; i++)
		group_add(&m->sums.total, &m->sums.group[i]);
}
