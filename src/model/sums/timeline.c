/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/timeline.h"

#include <errno.h>
#include "model/sums/sums.h"

#define FIRST_POINT_NS 1000000u
#define MAX_POINTS     2048u

void timeline_init(struct timeline *t, struct sums *sums, bool with_sections)
{
	*t = (struct timeline){
	    .sums = sums, .point_ns = FIRST_POINT_NS, .ignores_sections = !with_sections};
}

/* Joins each point with the next one. */
static void halve(struct timeline *t)
{
	struct timeline_point *at = t->sums->timeline.at;
	size_t n = t->sums->timeline.n;

	for (size_t i = 0; i < n; i += 2) {
		struct timeline_point p = at[i];

		if (i + 1 < n) {
			struct timeline_point q = at[i + 1];

			q.peak_bytes = p.peak_bytes > q.peak_bytes ? p.peak_bytes : q.peak_bytes;
			q.peak_blocks =
			    p.peak_blocks > q.peak_blocks ? p.peak_blocks : q.peak_blocks;
			q.allocations += p.allocations;
			q.frees += p.frees;
			q.allocated_bytes += p.allocated_bytes;
			q.freed_bytes += p.freed_bytes;
			p = q;
		}
		if (!t->has_sections)
			p.time_ns = (i / 2 + 1) * 2 * t->point_ns;
		at[i / 2] = p;
	}
	t->sums->timeline.n = (n + 1) / 2;
	t->point_ns *= 2;
}

int timeline_time(struct timeline *t, uint64_t now_ns, uint64_t live_bytes, uint64_t live_blocks)
{
	if (t->has_sections || now_ns < t->sums->timeline.n * t->point_ns)
		return 0;
	while (now_ns / t->point_ns >= MAX_POINTS)
		halve(t);
	while (t->sums->timeline.n <= now_ns / t->point_ns) {
		struct timeline_point p = {.time_ns = (t->sums->timeline.n + 1) * t->point_ns,
					   .live_bytes = live_bytes,
					   .live_blocks = live_blocks,
					   .peak_bytes = live_bytes,
					   .peak_blocks = live_blocks};

		if (vec_push(&t->sums->timeline, p))
			return -ENOMEM;
	}
	return 0;
}

/* Return: the newest point made of blocks, or NULL. */
static struct timeline_point *newest(const struct timeline *t)
{
	return t->has_sections ? NULL : &t->sums->timeline.at[t->sums->timeline.n - 1];
}

void timeline_level(struct timeline *t, uint64_t live_bytes, uint64_t live_blocks)
{
	struct timeline_point *p = newest(t);

	if (!p)
		return;
	p->live_bytes = live_bytes;
	p->live_blocks = live_blocks;
	if (live_bytes > p->peak_bytes)
		p->peak_bytes = live_bytes;
	if (live_blocks > p->peak_blocks)
		p->peak_blocks = live_blocks;
}

void timeline_allocated(struct timeline *t, uint64_t blocks, uint64_t bytes)
{
	struct timeline_point *p = newest(t);

	if (!p)
		return;
	p->allocations += blocks;
	p->allocated_bytes += bytes;
}

void timeline_freed(struct timeline *t, uint64_t blocks, uint64_t bytes)
{
	struct timeline_point *p = newest(t);

	if (!p)
		return;
	p->frees += blocks;
	p->freed_bytes += bytes;
}

int timeline_section(struct timeline *t, const struct mp_section *s)
{
	struct timeline_point p = {s->end_ns,	  s->live_bytes,      s->live_blocks,
				   s->peak_bytes, s->peak_blocks,     s->allocations,
				   s->frees,	  s->allocated_bytes, s->freed_bytes};

	if (t->ignores_sections)
		return 0;
	if (!t->has_sections)
		t->sums->timeline.n = 0;
	t->has_sections = true;
	/* The last section of a piece, and the first of the next one, can be empty. */
	if (t->sums->timeline.n &&
	    t->sums->timeline.at[t->sums->timeline.n - 1].time_ns >= p.time_ns)
		p.time_ns = t->sums->timeline.at[t->sums->timeline.n - 1].time_ns + 1;
	if (t->sums->timeline.n == MAX_POINTS)
		halve(t);
	return vec_push(&t->sums->timeline, p) ? -ENOMEM : 0;
}

void timeline_close(struct timeline *t, uint64_t end_ns)
{
	struct timeline_point *p = newest(t);

	if (p && p->time_ns > end_ns)
		p->time_ns = end_ns;
}
