/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/totals.h"

#include <errno.h>

#define FIRST_POINT_NS 1000000u
#define MAX_POINTS     2048u

void account_init(struct account *a, struct model *m)
{
	*a = (struct account){.m = m, .point_ns = FIRST_POINT_NS};
}

static struct group *group_of(const struct account *a, uint32_t stack)
{
	return &a->m->group[stack < a->m->nstacks ? stack : 0];
}

static struct size_class *class_of(const struct account *a, uint64_t size)
{
	return &a->m->size_class[size_class_of(size)];
}

/* Return: NULL if there is only one process. */
static struct model_process *process_of(const struct account *a, uint16_t number)
{
	return number < a->m->processes.n ? &a->m->processes.at[number] : NULL;
}

/* ------------------------------------------------------------------ timeline -- */

/* Doubles the length of the points, which halves their number. */
static void halve(struct account *a)
{
	size_t n = a->m->timeline.n;

	for (size_t i = 0; i < n; i += 2) {
		struct point p = a->m->timeline.at[i];

		if (i + 1 < n) {
			struct point q = a->m->timeline.at[i + 1];

			q.peak_bytes = p.peak_bytes > q.peak_bytes ? p.peak_bytes : q.peak_bytes;
			q.peak_blocks =
			    p.peak_blocks > q.peak_blocks ? p.peak_blocks : q.peak_blocks;
			q.allocations += p.allocations;
			q.frees += p.frees;
			q.allocated_bytes += p.allocated_bytes;
			q.freed_bytes += p.freed_bytes;
			p = q;
		}
		p.time_ns = (i / 2 + 1) * 2 * a->point_ns;
		a->m->timeline.at[i / 2] = p;
	}
	a->m->timeline.n = (n + 1) / 2;
	a->point_ns *= 2;
}

int account_time(struct account *a, uint64_t now_ns)
{
	a->now_ns = now_ns;
	while (now_ns / a->point_ns >= MAX_POINTS)
		halve(a);
	while (a->m->timeline.n <= now_ns / a->point_ns) {
		struct point p = {.time_ns = (a->m->timeline.n + 1) * a->point_ns,
				  .live_bytes = a->live_bytes,
				  .live_blocks = a->live_blocks,
				  .peak_bytes = a->live_bytes,
				  .peak_blocks = a->live_blocks};

		if (vec_push(&a->m->timeline, p))
			return -ENOMEM;
	}
	return 0;
}

/* The newest point.  Events that come slightly late are counted in it, too. */
static struct point *point_now(const struct account *a)
{
	return &a->m->timeline.at[a->m->timeline.n - 1];
}

static void point_level(const struct account *a)
{
	struct point *p = point_now(a);

	p->live_bytes = a->live_bytes;
	p->live_blocks = a->live_blocks;
	if (a->live_bytes > p->peak_bytes)
		p->peak_bytes = a->live_bytes;
	if (a->live_blocks > p->peak_blocks)
		p->peak_blocks = a->live_blocks;
}

/* ------------------------------------------------------------------ blocks -- */

/*
 * Computes what every group held at the highest peak, without visiting all groups at each peak.  A
 * group stores what it held at the last peak when it changes for the first time after it.
 */
static void note_peak(struct account *a, struct group *g)
{
	if (g->peak_epoch == a->epoch)
		return;
	g->peak_bytes = g->live_bytes;
	g->peak_blocks = g->live_blocks;
	g->peak_epoch = a->epoch;
}

static uint64_t usable_of(const struct model_block *b, const struct estimate *e)
{
	return e->factor > 1 ? (uint64_t)((double)b->usable * e->factor) : b->usable;
}

static int enter(struct account *a, const struct model_block *b, const struct estimate *e, int sign)
{
	struct group *g = group_of(a, b->stack);
	struct size_class *c = class_of(a, b->size);
	struct model_thread *t = model_thread(a->m, b->tid);
	struct model_process *p = process_of(a, b->process);
	uint64_t direction = (uint64_t)(int64_t)sign, bytes = direction * e->bytes,
		 blocks = direction * e->blocks, usable = direction * usable_of(b, e);

	if (!t)
		return -ENOMEM;
	note_peak(a, g);
	a->live_bytes += bytes;
	a->live_blocks += blocks;
	g->live_bytes += bytes;
	g->live_blocks += blocks;
	g->live_usable += usable;
	if (a->m->info.sample_interval) {
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
	point_level(a);
	return 0;
}

int account_allocated(struct account *a, const struct model_block *b)
{
	struct estimate e = model_estimate(a->m, b);
	struct group *g = group_of(a, b->stack);
	struct size_class *c = class_of(a, b->size);
	struct model_process *p = process_of(a, b->process);
	struct model_thread *t;

	if (enter(a, b, &e, 1))
		return -ENOMEM;
	if (b->flags & EV_F_CARRIED) { /* it was counted before, by another recorder */
		a->m->carried_blocks += e.blocks;
		a->m->carried_bytes += e.bytes;
		return 0;
	}
	t = model_thread(a->m, b->tid);
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
	if (a->m->info.sample_interval) {
		g->variance_allocations += e.variance_blocks;
		g->variance_allocated += e.variance_bytes;
	}
	if (g->live_bytes > g->most_bytes) {
		g->most_bytes = g->live_bytes;
		g->most_ns = b->time_ns;
	}
	c->allocations += e.blocks;
	c->allocated_bytes += e.bytes;
	c->usable_bytes += usable_of(b, &e);
	point_now(a)->allocations += e.blocks;
	point_now(a)->allocated_bytes += e.bytes;
	if (a->live_bytes > a->m->peak_bytes) {
		a->m->peak_bytes = a->live_bytes;
		a->m->peak_blocks = a->live_blocks;
		a->m->peak_time_ns = a->now_ns;
		a->epoch++;
	}
	return 0;
}

int account_faulted(struct account *a, const struct model_block *page)
{
	bool is_huge = page->size > a->m->info.page_size;
	struct group *g = group_of(a, page->stack);
	struct model_thread *t = model_thread(a->m, page->tid);
	struct model_process *p = process_of(a, page->process);

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
	a->m->unsized += (page->flags & EV_F_NO_SIZE) != 0;
	point_now(a)->allocations++;
	point_now(a)->allocated_bytes += page->size;
	return 0;
}

int account_ended(struct account *a, const struct model_block *b, const struct mp_event *by,
		  enum block_end how)
{
	struct estimate e = model_estimate(a->m, b);
	struct group *g = group_of(a, b->stack);
	struct size_class *c = class_of(a, b->size);
	struct model_process *p = process_of(a, b->process);
	struct model_thread *t;

	if (enter(a, b, &e, -1))
		return -ENOMEM;
	g->frees += e.blocks;
	if (p)
		p->frees += e.blocks;
	point_now(a)->frees += e.blocks;
	point_now(a)->freed_bytes += e.bytes;
	if (how == BLOCK_LOST)
		return 0; /* the thread is not known */
	t = model_thread(a->m, by->tid);
	if (!t)
		return -ENOMEM;
	t->frees += e.blocks;
	/* In a sample it is not known whether the thread allocated in between. */
	if (how != BLOCK_TEMPORARY || a->m->info.sample_interval)
		return 0;
	g->temporary++;
	g->temporary_bytes += b->size;
	c->temporary++;
	t->temporary++;
	return 0;
}

int account_culled(struct account *a, const struct mp_culled *c)
{
	struct group *g = group_of(a, c->stack);
	struct size_class *s = &a->m->size_class[SIZE_CLASS_CULLED];
	struct model_thread *t = model_thread(a->m, c->tid);
	struct model_process *p = process_of(a, c->process);

	if (!t || account_time(a, c->time_ns > a->now_ns ? c->time_ns : a->now_ns))
		return -ENOMEM;
	t->allocations += c->blocks;
	t->allocated_bytes += c->bytes;
	t->temporary += c->temporary;
	if (p) {
		p->allocations += c->blocks;
		p->allocated_bytes += c->bytes;
		p->frees += c->blocks;
	}
	t = model_thread(a->m, c->free_tid);
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
	a->m->culled_blocks += c->blocks;
	a->m->culled_bytes += c->bytes;
	point_now(a)->allocations += c->blocks;
	point_now(a)->frees += c->blocks;
	point_now(a)->allocated_bytes += c->bytes;
	point_now(a)->freed_bytes += c->bytes;
	return 0;
}

int account_close(struct account *a)
{
	struct model *m = a->m;

	if (account_time(a, m->end_ns))
		return -ENOMEM;
	if (point_now(a)->time_ns > m->end_ns)
		point_now(a)->time_ns = m->end_ns;
	m->total = (struct group){0};
	for (uint32_t i = 0; i < m->nstacks; i++) {
		note_peak(a, &m->group[i]);
		group_add(&m->total, &m->group[i]);
	}
	return 0;
}
