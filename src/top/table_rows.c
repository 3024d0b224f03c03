/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/table_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/fnv.h"
#include "model/model.h"
#include "model/places.h"

/* ------------------------------------------------------------------ sums -- */

static void add_sum(struct past_sum *sum, const struct past_sum *s)
{
	sum->live_bytes += s->live_bytes;
	sum->allocations += s->allocations;
	sum->allocated_bytes += s->allocated_bytes;
	sum->temporary += s->temporary;
}

void table_sums_add(struct table_sums *sum, const struct table_sums *s)
{
	add_sum(&sum->now, &s->now);
	add_sum(&sum->first, &s->first);
	add_sum(&sum->mark, &s->mark);
	sum->live_blocks += s->live_blocks;
	sum->variance_live += s->variance_live;
	sum->stacks += s->stacks;
}

bool table_sums_are_busy(const struct table_sums *s)
{
	return s->now.live_bytes || s->live_blocks || s->now.live_bytes != s->first.live_bytes ||
	       s->now.live_bytes != s->mark.live_bytes ||
	       s->now.allocations != s->first.allocations;
}

/* An estimate can become less. */
static double growth(uint64_t now, uint64_t before)
{
	return (double)(int64_t)(now - before);
}

static double temporary_share(const struct table_sums *s)
{
	double all = growth(s->now.allocations, s->first.allocations);
	double part = growth(s->now.temporary, s->first.temporary);

	if (all <= 0) {
		all = (double)s->now.allocations;
		part = (double)s->now.temporary;
	}
	if (all <= 0)
		return -1;
	/* A block that was allocated before the span can have been freed in it. */
	return part < 0 ? 0 : part > all ? 1 : part / all;
}

void table_sums_show(const struct table_sums *s, double span, bool sampled, struct table_row *row)
{
	const struct past_sum *now = &s->now, *first = &s->first;

	row->stacks = s->stacks;
	row->live_bytes = now->live_bytes;
	row->live_blocks = s->live_blocks;
	row->live_error = group_error(s->variance_live);
	row->since_mark = (int64_t)(now->live_bytes - s->mark.live_bytes);
	row->temporary = sampled ? -1 : temporary_share(s);
	row->total_allocations = now->allocations;
	row->total_bytes = now->allocated_bytes;
	row->growth = row->allocations = row->allocated_bytes = 0;
	if (span > 0) {
		row->growth = growth(now->live_bytes, first->live_bytes) / span;
		row->allocations = growth(now->allocations, first->allocations) / span;
		row->allocated_bytes = growth(now->allocated_bytes, first->allocated_bytes) / span;
	}
}

/* ------------------------------------------------------------------ rows -- */

/* @hash: of what the row is by */
static uint64_t key_of(enum table_by by, uint64_t hash)
{
	return fnv_byte(hash, (uint8_t)by);
}

static enum group_by group_by_of(enum table_by by)
{
	switch (by) {
	case TABLE_LINE:
		return GROUP_BY_LINE;
	case TABLE_FUNCTION:
		return GROUP_BY_FUNCTION;
	case TABLE_LIBRARY:
		return GROUP_BY_LIBRARY;
	default:
		return GROUP_BY_STACK;
	}
}

struct finder {
	struct model *m;
	const struct past *past;
	const struct past_moment *first;
	const struct table_view *v;
	struct table_names *names;
	struct table_rows *r;
};

static void add_stack(const struct finder *s, struct table_found *f, uint32_t id)
{
	const struct group *g = &s->m->sums.group[id];
	struct table_sums sums = {.now = past_of_group(g),
				  .live_blocks = g->live_blocks,
				  .variance_live = g->variance_live,
				  .stacks = 1};

	sums.first = s->first ? past_stack(s->first, id) : sums.now;
	sums.mark = s->past->marked ? past_stack(&s->past->mark, id) : sums.now;
	if (!f->sums.stacks || g->live_bytes > f->most) {
		f->row.stack = id;
		f->most = g->live_bytes;
	}
	table_sums_add(&f->sums, &sums);
}

/* Adds a row for each place of @p, with its stacks that are of place @limit in @of; NULL: all. */
static int add_places(const struct finder *s, const struct places *p, const struct places *of,
		      uint32_t limit)
{
	vec_for_each (&p->at, place) {
		struct table_found f = {
		    .row = {.at = place->at, .key = key_of(s->v->by, place->key)}};

		if (vec_push(&s->r->at, f))
			return -ENOMEM;
	}
	for (uint32_t id = 0; id < s->m->stacks.n; id++) {
		if (p->of_stack[id] != PLACE_NONE && (!of || of->of_stack[id] == limit))
			add_stack(s, &s->r->at.at[p->of_stack[id]], id);
	}
	return 0;
}

static int find_within(const struct finder *s, const struct places *p)
{
	struct places of;
	uint32_t limit;
	int ret = places_find(s->m, group_by_of(s->v->of), COST_LEAKED, true, &of);

	if (ret)
		return ret;
	for (limit = 0; limit < of.at.n; limit++) {
		if (key_of(s->v->of, of.at.at[limit].key) == s->v->key)
			break;
	}
	ret = add_places(s, p, &of, limit);
	places_free(&of);
	return ret;
}

static int find_places(const struct finder *s)
{
	struct places p;
	int ret = places_find(s->m, group_by_of(s->v->by), COST_LEAKED, true, &p);

	if (ret)
		return ret;
	ret = s->v->within ? find_within(s, &p) : add_places(s, &p, NULL, 0);
	places_free(&p);
	return ret;
}

/* Return: the name of @t, one that is added to @names if need be; NULL when out of memory. */
static const char *name_of(const struct model_thread *t, struct table_names *names)
{
	char *name;

	if (t->name)
		return t->name;
	if (asprintf(&name, "thread %u", t->tid) < 0)
		return NULL;
	if (!vec_push(&names->at, name))
		return name;
	free(name);
	return NULL;
}

/* What is live is not known, so before there is a span every thread has a row. */
static int find_threads(const struct finder *s)
{
	for (uint32_t i = 0; i < s->m->tasks.threads.n; i++) {
		const struct model_thread *t = &s->m->tasks.threads.at[i];
		uint64_t hash = fnv((const uint8_t *)&t->tid, sizeof(t->tid));
		struct table_found f = {.row = {.tid = t->tid, .key = key_of(TABLE_THREAD, hash)},
					.sums = {.now = past_of_thread(t)}};

		if (s->first)
			f.sums.first = past_thread(s->first, i);
		f.row.at.function = name_of(t, s->names);
		if (!f.row.at.function || vec_push(&s->r->at, f))
			return -ENOMEM;
	}
	return 0;
}

int table_rows_find(struct model *m, const struct past *past, const struct table_view *v,
		    struct table_names *names, struct table_rows *r)
{
	struct finder s = {
	    .m = m, .past = past, .first = past_first(past), .v = v, .names = names, .r = r};

	*r = (struct table_rows){0};
	if (v->by != TABLE_THREAD)
		return find_places(&s);
	return v->within ? 0 : find_threads(&s);
}

void table_rows_free(struct table_rows *r)
{
	vec_free(&r->at);
}
