/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/past.h"

#include <errno.h>
#include "model/model.h"

struct past_sum past_of_group(const struct group *g)
{
	return (struct past_sum){.live_bytes = g->live_bytes,
				 .allocations = g->allocations,
				 .allocated_bytes = g->allocated_bytes,
				 .temporary = g->temporary};
}

struct past_sum past_of_thread(const struct model_thread *t)
{
	return (struct past_sum){.allocations = t->allocations,
				 .allocated_bytes = t->allocated_bytes,
				 .temporary = t->temporary};
}

static void moment_free(struct past_moment *at)
{
	vec_free(&at->stacks);
	vec_free(&at->threads);
}

static int moment_make(struct past_moment *at, const struct model *m)
{
	int ret = 0;

	*at = (struct past_moment){.time_ns = m->facts.end_ns,
				   .total = past_of_group(&m->sums.total)};
	for (uint32_t id = 0; !ret && id < m->stacks.n; id++)
		ret = vec_push(&at->stacks, past_of_group(&m->sums.group[id]));
	for (size_t i = 0; !ret && i < m->tasks.threads.n; i++)
		ret = vec_push(&at->threads, past_of_thread(&m->tasks.threads.at[i]));
	if (ret)
		moment_free(at);
	return ret;
}

static int replace(struct past_moment *at, const struct model *m)
{
	struct past_moment fresh;
	int ret = moment_make(&fresh, m);

	if (ret)
		return ret;
	moment_free(at);
	*at = fresh;
	return 0;
}

static const struct past_moment *last_of(const struct past *p)
{
	return &p->at[(p->n - 1) % PAST_MOMENTS];
}

int past_add(struct past *p, const struct model *m)
{
	uint32_t n = p->n;
	int ret;

	if (!n || m->facts.end_ns > last_of(p)->time_ns)
		n++;
	ret = replace(&p->at[(n - 1) % PAST_MOMENTS], m);
	if (!ret)
		p->n = n;
	return ret;
}

int past_mark(struct past *p, const struct model *m)
{
	int ret = replace(&p->mark, m);

	if (!ret)
		p->marked = true;
	return ret;
}

const struct past_moment *past_first(const struct past *p)
{
	if (p->n < 2)
		return NULL;
	return &p->at[p->n < PAST_MOMENTS ? 0 : p->n % PAST_MOMENTS];
}

double past_span(const struct past *p)
{
	const struct past_moment *first = past_first(p);

	if (!first || last_of(p)->time_ns < first->time_ns)
		return 0;
	return (double)(last_of(p)->time_ns - first->time_ns) / 1e9;
}

struct past_sum past_stack(const struct past_moment *at, uint32_t id)
{
	return id < at->stacks.n ? at->stacks.at[id] : (struct past_sum){0};
}

struct past_sum past_thread(const struct past_moment *at, uint32_t i)
{
	return i < at->threads.n ? at->threads.at[i] : (struct past_sum){0};
}

void past_free(struct past *p)
{
	for (uint32_t i = 0; i < PAST_MOMENTS; i++)
		moment_free(&p->at[i]);
	moment_free(&p->mark);
	*p = (struct past){0};
}
