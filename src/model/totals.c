/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/totals.h"

#include <errno.h>
#include "lib/estimate.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/weight.h"

#define FIRST_POINT_NS 1000000u
#define MAX_POINTS     2048u

void totals_init(struct totals *tot, struct model *m)
{
	*tot = (struct totals){.m = m, .point_ns = FIRST_POINT_NS};
	shapes_free(&m->sums.shapes);
	shapes_init(&m->sums.shapes);
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

/* ------------------------------------------------------------------ timeline -- */

/* Doubles the length of the points, which halves their number. */
static void halve(struct totals *tot)
{
	size_t n = tot->m->sums.timeline.n;

	for (size_t i = 0; i < n; i += 2) {
		struct timeline_point p = tot->m->sums.timeline.at[i];

		if (i + 1 < n) {
			struct timeline_point q = tot->m->sums.timeline.at[i + 1];

			q.peak_bytes = p.peak_bytes > q.peak_bytes ? p.peak_bytes : q.peak_bytes;
			q.peak_blocks =
			    p.peak_blocks > q.peak_blocks ? p.peak_blocks : q.peak_blocks;
			q.allocations += p.allocations;
			q.frees += p.frees;
			q.allocated_bytes += p.allocated_bytes;
			q.freed_bytes += p.freed_bytes;
			p = q;
		}
		p.time_ns = (i / 2 + 1) * 2 * tot->point_ns;
		tot->m->sums.timeline.at[i / 2] = p;
	}
	tot->m->sums.timeline.n = (n + 1) / 2;
	tot->point_ns *= 2;
}

int totals_time(struct totals *tot, uint64_t now_ns)
{
	tot->now_ns = now_ns;
	if (shapes_time(&tot->m->sums.shapes, now_ns, tot->m->sums.group, tot->m->stacks.n))
		return -ENOMEM;
	while (now_ns / tot->point_ns >= MAX_POINTS)
		halve(tot);
	while (tot->m->sums.timeline.n <= now_ns / tot->point_ns) {
		struct timeline_point p = {.time_ns = (tot->m->sums.timeline.n + 1) * tot->point_ns,
					   .live_bytes = tot->live_bytes,
					   .live_blocks = tot->live_blocks,
					   .peak_bytes = tot->live_bytes,
					   .peak_blocks = tot->live_blocks};

		if (vec_push(&tot->m->sums.timeline, p))
			return -ENOMEM;
	}
	return 0;
}

/* The newest point.  Events that come slightly late are counted in it, too. */
static struct timeline_point *point_now(const struct totals *tot)
{
	return &tot->m->sums.timeline.at[tot->m->sums.timeline.n - 1];
}

static void point_level(const struct totals *tot)
{
	struct timeline_point *p = point_now(tot);

	p->live_bytes = tot->live_bytes;
	p->live_blocks = tot->live_blocks;
	if (tot->live_bytes > p->peak_bytes)
		p->peak_bytes = tot->live_bytes;
	if (tot->live_blocks > p->peak_blocks)
		p->peak_blocks = tot->live_blocks;
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
	point_level(tot);
	return 0;
}

int totals_allocated(struct totals *tot, const struct model_block *b)
{
	struct estimate e = model_estimate(tot->m, b);
	struct group *g = group_of(tot, b->stack);
	struct size_class *c = class_of(tot, b->size);
	struct model_process *p = process_of(tot, b->process);
	struct model_thread *t;

	if (enter(tot, b, &e, 1))
		return -ENOMEM;
	if (b->flags & EV_F_CARRIED) { /* it was counted before, by another recorder */
		tot->m->sums.carried_blocks += e.blocks;
		tot->m->sums.carried_bytes += e.bytes;
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
	if (!g->allocations)
		g->first_ns = b->time_ns;
	g->last_ns = b->time_ns;
	g->allocations += e.blocks;
	g->allocated_bytes += e.bytes;
	g->usable_bytes += usable_of(b, &e);
	if (e.factor > 1) {
		g->variance_allocations += e.variance_blocks;
		g->variance_allocated += e.variance_bytes;
	}
	if (b->weight) {
		g->weights += e.factor;
		g->squares += e.factor * e.factor;
		g->weighted_bytes += (double)e.bytes;
	}
	if (g->live_bytes > g->most_bytes) {
		g->most_bytes = g->live_bytes;
		g->most_ns = b->time_ns;
	}
	c->allocations += e.blocks;
	c->allocated_bytes += e.bytes;
	c->usable_bytes += usable_of(b, &e);
	point_now(tot)->allocations += e.blocks;
	point_now(tot)->allocated_bytes += e.bytes;
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
	g->allocations++;
	g->allocated_bytes += page->size;
	g->major += (page->flags & EV_F_MAJOR) != 0;
	g->huge += is_huge;
	g->huge_bytes += is_huge ? page->size : 0;
	tot->m->sums.unsized += (page->flags & EV_F_NO_SIZE) != 0;
	point_now(tot)->allocations++;
	point_now(tot)->allocated_bytes += page->size;
	return 0;
}

int totals_ended(struct totals *tot, const struct model_block *b, const struct mp_event *by,
		 enum block_end how)
{
	struct estimate e = model_estimate(tot->m, b);
	struct group *g = group_of(tot, b->stack);
	struct size_class *c = class_of(tot, b->size);
	struct model_process *p = process_of(tot, b->process);
	struct model_thread *t;

	if (enter(tot, b, &e, -1))
		return -ENOMEM;
	g->frees += e.blocks;
	if (p)
		p->frees += e.blocks;
	point_now(tot)->frees += e.blocks;
	point_now(tot)->freed_bytes += e.bytes;
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

int totals_culled(struct totals *tot, const struct mp_culled *c)
{
	struct group *g = group_of(tot, c->stack);
	struct size_class *s = &tot->m->sums.size_class[SIZE_CLASS_CULLED];
	struct model_thread *t = tasks_thread(&tot->m->tasks, c->tid);
	struct model_process *p = process_of(tot, c->process);

	if (!t || totals_time(tot, c->time_ns > tot->now_ns ? c->time_ns : tot->now_ns))
		return -ENOMEM;
	t->allocations += c->blocks;
	t->allocated_bytes += c->bytes;
	t->temporary += c->temporary;
	if (p) {
		p->allocations += c->blocks;
		p->allocated_bytes += c->bytes;
		p->frees += c->blocks;
	}
	t = tasks_thread(&tot->m->tasks, c->free_tid);
	if (!t)
		return -ENOMEM;
	t->frees += c->blocks;
	if (!g->allocations)
		g->first_ns = c->time_ns;
	g->last_ns = c->time_ns;
	g->allocations += c->blocks;
	g->frees += c->blocks;
	g->allocated_bytes += c->bytes;
	g->usable_bytes += c->usable;
	g->temporary += c->temporary;
	g->temporary_bytes += c->temporary_bytes;
	s->allocations += c->blocks;
	s->allocated_bytes += c->bytes;
	s->usable_bytes += c->usable;
	s->temporary += c->temporary;
	tot->m->sums.culled_blocks += c->blocks;
	tot->m->sums.culled_bytes += c->bytes;
	point_now(tot)->allocations += c->blocks;
	point_now(tot)->frees += c->blocks;
	point_now(tot)->allocated_bytes += c->bytes;
	point_now(tot)->freed_bytes += c->bytes;
	return 0;
}

int totals_close(struct totals *tot)
{
	struct model *m = tot->m;

	if (totals_time(tot, m->facts.end_ns) ||
	    shapes_close(&m->sums.shapes, m->sums.group, m->stacks.n))
		return -ENOMEM;
	if (point_now(tot)->time_ns > m->facts.end_ns)
		point_now(tot)->time_ns = m->facts.end_ns;
	m->sums.total = (struct group){0};
	for (uint32_t i = 0; i < m->stacks.n; i++) {
		note_peak(tot, &m->sums.group[i]);
		group_add_unseen(&m->sums.group[i]);
		group_add(&m->sums.total, &m->sums.group[i]);
	}
	return 0;
}
