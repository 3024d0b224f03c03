/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/totals.h"

#include <errno.h>
#include "formats/record.h"
#include "lib/estimate.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/sums/weight.h"

void totals_init(struct totals *tot, struct model *m)
{
	*tot = (struct totals){.m = m};
	timeline_init(&tot->timeline, &m->sums, !m->source.selection);
	shapes_free(&m->sums.shapes);
	shapes_init(&m->sums.shapes);
}

/* Most blocks count once. */
static inline struct estimate estimate_of(const struct totals *tot, const struct model_block *b)
{
	if (!b->weight && !tot->m->info.sample_interval)
		return (struct estimate){.blocks = 1, .bytes = b->size, .factor = 1};
	return model_estimate(tot->m, b);
}

static struct group *group_of(const struct totals *tot, uint32_t stack)
{
	return &tot->m->sums.group[stack < tot->m->stacks.n ? stack : 0];
}

static struct size_class *class_of(const struct totals *tot, uint64_t size)
{
	return &tot->m->sums.size_class[size_class_of(size)];
}

/* Return: NULL if there is only one process. */
static struct model_process *process_of(const struct totals *tot, uint16_t number)
{
	return number < tot->m->tasks.processes.n ? &tot->m->tasks.processes.at[number] : NULL;
}

int totals_time(struct totals *tot, uint64_t now_ns)
{
	tot->now_ns = now_ns;
	if (shapes_time(&tot->m->sums.shapes, now_ns, tot->m->sums.group, tot->m->stacks.n))
		return -ENOMEM;
	return timeline_time(&tot->timeline, now_ns, tot->live_bytes, tot->live_blocks);
}

/* ------------------------------------------------------------------ blocks -- */

/*
 * Computes what every group held at the highest peak, without visiting all groups at each peak.  A
 * group stores what it held at the last peak when it changes for the first time after it.
 */
static void note_peak(struct totals *tot, struct group *g)
{
	if (g->peak_epoch == tot->epoch)
		return;
	g->peak_bytes = g->live_bytes;
	g->peak_blocks = g->live_blocks;
	g->peak_epoch = tot->epoch;
}

static uint64_t usable_of(const struct model_block *b, const struct estimate *e)
{
	return e->factor > 1 ? (uint64_t)((double)b->usable * e->factor) : b->usable;
}

static int enter(struct totals *tot, const struct model_block *b, const struct estimate *e,
		 int sign)
{
	struct group *g = group_of(tot, b->stack);
	struct size_class *c = class_of(tot, b->size);
	struct model_thread *t = tasks_thread(&tot->m->tasks, b->tid);
	struct model_process *p = process_of(tot, b->process);
	uint64_t direction = (uint64_t)(int64_t)sign, bytes = direction * e->bytes,
		 blocks = direction * e->blocks, usable = direction * usable_of(b, e);

	if (!t || shapes_note(&tot->m->sums.shapes, b->stack < tot->m->stacks.n ? b->stack : 0,
			      g->live_bytes))
		return -ENOMEM;
	note_peak(tot, g);
	tot->live_bytes += bytes;
	tot->live_blocks += blocks;
	g->live_bytes += bytes;
	g->live_blocks += blocks;
	g->live_usable += usable;
	if (e->factor > 1) {
		g->variance_blocks += sign * e->variance_blocks;
		g->variance_live += sign * e->variance_bytes;
	}
	c->live_bytes += bytes;
	c->live_blocks += blocks;
	c->live_usable += usable;
	t->live_bytes += bytes;
	t->live_blocks += blocks;
	if (p) {
		p->live_bytes += bytes;
		p->live_blocks += blocks;
	}
	timeline_level(&tot->timeline, tot->live_bytes, tot->live_blocks);
	return 0;
}

/* Notes what group_add_unseen() needs of @n allocations, each of which represents @e. */
static void note_weight(struct group *g, uint64_t size, uint64_t n, uint8_t weight,
			const struct estimate *e)
{
	if (weight) {
		g->weights += (double)n * e->factor;
		g->squares += (double)n * e->factor * e->factor;
		g->weighted_bytes += (double)n * (double)e->bytes;
	} else if (size < MPR_WEIGHT_MAX_SIZE) {
		g->singles += n;
		g->single_bytes += n * size;
	}
}

/* To be called before the allocation is counted. */
static void note_size(struct group *g, uint64_t size)
{
	if (!g->allocations || size < g->min_size)
		g->min_size = size;
	if (size > g->max_size)
		g->max_size = size;
}

/* A recording of the live heap has the times of the allocations; pieces do not.  To be called after the
 * block is counted as live. */
static void note_times(struct group *g, const struct model_block *b, const struct estimate *e)
{
	if (g->live_blocks == e->blocks || g->first_ns > b->time_ns)
		g->first_ns = b->time_ns;
	if (g->last_ns < b->time_ns)
		g->last_ns = b->time_ns;
}

static void note_carried(struct sums *s, struct group *g, const struct model_block *b,
			 const struct estimate *e)
{
	s->carried_blocks += e->blocks;
	s->carried_bytes += e->bytes;
	note_weight(g, b->size, 1, b->weight, e);
	g->carried_singles |= !b->weight;
}

int totals_allocated(struct totals *tot, const struct model_block *b)
{
	struct estimate e = estimate_of(tot, b);
	struct group *g = group_of(tot, b->stack);
	struct size_class *c = class_of(tot, b->size);
	struct model_process *p = process_of(tot, b->process);
	struct model_thread *t;

	if (enter(tot, b, &e, 1))
		return -ENOMEM;
	if (b->flags & EV_F_CARRIED) { /* it was counted before, by another recorder */
		note_carried(&tot->m->sums, g, b, &e);
		if (tot->m->info.live_only)
			note_times(g, b, &e);
		return 0;
	}
	if (b->weight)
		thinned_add(&tot->m->sums.thinned, b->time_ns, b->weight);
	t = tasks_thread(&tot->m->tasks, b->tid);
	t->allocations += e.blocks;
	t->allocated_bytes += e.bytes;
	if (p) {
		p->allocations += e.blocks;
		p->allocated_bytes += e.bytes;
	}
	/* Sums of culled blocks can come before. */
	if (!g->allocations || g->first_ns > b->time_ns)
		g->first_ns = b->time_ns;
	if (!g->allocations || g->last_ns < b->time_ns)
		g->last_ns = b->time_ns;
	note_size(g, b->size);
	g->allocations += e.blocks;
	g->allocated_bytes += e.bytes;
	g->usable_bytes += usable_of(b, &e);
	if (e.factor > 1) {
		g->variance_allocations += e.variance_blocks;
		g->variance_allocated += e.variance_bytes;
	}
	note_weight(g, b->size, 1, b->weight, &e);
	if (g->live_bytes > g->most_bytes) {
		g->most_bytes = g->live_bytes;
		g->most_ns = b->time_ns;
	}
	c->allocations += e.blocks;
	c->allocated_bytes += e.bytes;
	c->usable_bytes += usable_of(b, &e);
	timeline_allocated(&tot->timeline, e.blocks, e.bytes);
	if (tot->live_bytes > tot->m->sums.peak_bytes) {
		tot->m->sums.peak_bytes = tot->live_bytes;
		tot->m->sums.peak_blocks = tot->live_blocks;
		tot->m->sums.peak_time_ns = tot->now_ns;
		tot->epoch++;
	}
	return 0;
}

int totals_faulted(struct totals *tot, const struct model_block *page)
{
	bool is_huge = page->size > tot->m->info.page_size;
	struct group *g = group_of(tot, page->stack);
	struct model_thread *t = tasks_thread(&tot->m->tasks, page->tid);
	struct model_process *p = process_of(tot, page->process);

	if (!t)
		return -ENOMEM;
	if (p) {
		p->allocations++;
		p->allocated_bytes += page->size;
	}
	t->allocations++;
	t->allocated_bytes += page->size;
	if (!g->allocations)
		g->first_ns = page->time_ns;
	g->last_ns = page->time_ns;
	note_size(g, page->size);
	g->allocations++;
	g->allocated_bytes += page->size;
	g->major += (page->flags & EV_F_MAJOR) != 0;
	g->huge += is_huge;
	g->huge_bytes += is_huge ? page->size : 0;
	tot->m->sums.unsized += (page->flags & EV_F_NO_SIZE) != 0;
	timeline_allocated(&tot->timeline, 1, page->size);
	return 0;
}

int totals_ended(struct totals *tot, const struct model_block *b, const struct mp_event *by,
		 enum block_end how)
{
	struct estimate e = estimate_of(tot, b);
	struct group *g = group_of(tot, b->stack);
	struct size_class *c = class_of(tot, b->size);
	struct model_process *p = process_of(tot, b->process);
	struct model_thread *t;

	if (enter(tot, b, &e, -1))
		return -ENOMEM;
	g->frees += e.blocks;
	if (p)
		p->frees += e.blocks;
	timeline_freed(&tot->timeline, e.blocks, e.bytes);
	if (how == BLOCK_LOST)
		return 0; /* the thread is not known */
	t = tasks_thread(&tot->m->tasks, by->tid);
	if (!t)
		return -ENOMEM;
	t->frees += e.blocks;
	/* In a sample it is not known whether the thread allocated in between. */
	if (how != BLOCK_TEMPORARY || tot->m->info.sample_interval)
		return 0;
	g->temporary += e.blocks;
	g->temporary_bytes += e.bytes;
	c->temporary += e.blocks;
	t->temporary += e.blocks;
	return 0;
}

/* Adds what the blocks of @c, @n with those that they represent, have in common with single ones. */
static void add_culled(struct totals *tot, const struct mp_culled *c, const struct estimate *e,
		       uint64_t n)
{
	struct group *g = group_of(tot, c->stack);
	struct size_class *s = class_of(tot, c->size);
	uint64_t bytes = mp_culled_bytes(c), usable = c->usable << c->weight,
		 temporary = c->flags & MP_CULLED_TEMPORARY ? n : 0;
	double recorded = (double)c->blocks;

	if (!g->allocations || g->first_ns > c->first_ns)
		g->first_ns = c->first_ns;
	if (!g->allocations || g->last_ns < c->last_ns)
		g->last_ns = c->last_ns;
	note_size(g, c->size);
	g->allocations += n;
	g->frees += n;
	g->allocated_bytes += bytes;
	g->usable_bytes += usable;
	g->temporary += temporary;
	g->temporary_bytes += temporary ? bytes : 0;
	s->allocations += n;
	s->allocated_bytes += bytes;
	s->usable_bytes += usable;
	s->temporary += temporary;
	note_weight(g, c->size, c->blocks, c->weight, e);
	if (!c->weight)
		return;
	g->variance_allocations += recorded * e->variance_blocks;
	g->variance_allocated += recorded * e->variance_bytes;
}

int totals_culled(struct totals *tot, const struct mp_culled *c)
{
	struct estimate e = estimate_block(0, c->size, c->weight, 0);
	uint64_t n = mp_culled_count(c), bytes = mp_culled_bytes(c);
	struct model_thread *t = tasks_thread(&tot->m->tasks, c->tid);
	struct model_process *p = process_of(tot, c->process);

	/* The events of the same time come later. */
	if (!t || totals_time(tot, tot->now_ns))
		return -ENOMEM;
	t->allocations += n;
	t->allocated_bytes += bytes;
	t->temporary += c->flags & MP_CULLED_TEMPORARY ? n : 0;
	if (p) {
		p->allocations += n;
		p->allocated_bytes += bytes;
		p->frees += n;
	}
	t = tasks_thread(&tot->m->tasks, c->free_tid);
	if (!t)
		return -ENOMEM;
	t->frees += n;
	add_culled(tot, c, &e, n);
	tot->m->sums.culled_blocks += n;
	tot->m->sums.culled_bytes += bytes;
	if (c->weight)
		thinned_add_many(&tot->m->sums.thinned, c->first_ns, c->last_ns, c->weight,
				 c->blocks);
	timeline_allocated(&tot->timeline, n, bytes);
	timeline_freed(&tot->timeline, n, bytes);
	return 0;
}

int totals_section(struct totals *tot, const struct mp_section *s)
{
	return timeline_section(&tot->timeline, s);
}

void totals_stack_peak(struct totals *tot, const struct mp_stack_peak *p)
{
	struct group *g = group_of(tot, p->stack);

	/* Blocks that are kept can reach again what culled ones had reached before. */
	if (p->most_bytes > g->most_bytes ||
	    (p->most_bytes == g->most_bytes && p->most_ns < g->most_ns)) {
		g->most_bytes = p->most_bytes;
		g->most_ns = p->most_ns;
	}
	/* Of pieces that were merged, one has the peak; it is 0 in the others. */
	g->told_bytes += p->peak_bytes;
	g->told_blocks += p->peak_blocks;
	tot->has_peaks = true;
}

static void take_whole_peak(struct model *m)
{
	const struct mp_finish *f = &m->facts.finish;

	m->sums.peak_has_culled = true;
	m->sums.peak_bytes = f->peak_live_bytes;
	m->sums.peak_blocks = f->peak_live_blocks;
	m->sums.peak_time_ns = f->peak_time_ns;
}

/* The peak of a culled recording is in its own items, since the events of the blocks that were kept
 * do not reach it. */
static void take_peak(struct model *m)
{
	take_whole_peak(m);
	for (uint32_t i = 0; i < m->stacks.n; i++) {
		m->sums.group[i].peak_bytes = m->sums.group[i].told_bytes;
		m->sums.group[i].peak_blocks = m->sums.group[i].told_blocks;
	}
}

/*
 * Return: whether allocations of @g may have been thinned out.  When the blocks were allocated that
 * were carried over is not known; nor is when thinning took place if the recording has, or the
 * filter lets through, no allocation that represents others.
 */
static bool may_be_thinned(const struct model *m, const struct group *g)
{
	if (g->carried_singles || !m->sums.thinned.n)
		return m->facts.losses.thinned;
	return thinned_between(&m->sums.thinned, g->first_ns, g->last_ns);
}

int totals_close(struct totals *tot)
{
	struct model *m = tot->m;

	if (totals_time(tot, m->facts.end_ns) ||
	    shapes_close(&m->sums.shapes, m->sums.group, m->stacks.n))
		return -ENOMEM;
	timeline_close(&tot->timeline, m->facts.end_ns);
	for (uint32_t i = 0; i < m->stacks.n; i++)
		note_peak(tot, &m->sums.group[i]);
	m->sums.kept_peak_bytes = m->sums.peak_bytes;
	m->sums.peak_has_culled = !m->sums.culled_blocks;
	if (tot->has_peaks && m->facts.has_finish && !m->source.selection)
		take_peak(m);
	/* What the blocks that are still live show of the time before is not what was live then. */
	if (m->info.live_only) {
		m->sums.timeline.n = 0;
		take_whole_peak(m);
	}
	m->sums.total = (struct group){0};
	for (uint32_t i = 0; i < m->stacks.n; i++) {
		group_add_unseen(&m->sums.group[i], may_be_thinned(m, &m->sums.group[i]));
		group_add(&m->sums.total, &m->sums.group[i]);
	}
	return 0;
}
