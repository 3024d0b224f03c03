/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/growth_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "export/json.h"
#include "export/lists/site_list.h"
#include "model/model.h"

#define MINUTE_NS 60e9

struct curve {
	const struct place *place;
	uint64_t level[SHAPE_POINTS], first_ns;
	int64_t rise; /* from the middle on */
	enum growth shape;
};

struct growth_list {
	const struct places *places;
	struct curve *at; /* [place] */
	size_t n;
	uint32_t known, middle; /* points; the middle's index */
};

static void add_stack(struct growth_list *l, const struct model *m, uint32_t id)
{
	const struct shapes *s = &m->sums.shapes;
	const struct shape_curve *c = id < s->at.n ? &s->at.at[id] : NULL;
	struct curve *to = &l->at[l->places->of_stack[id]];

	if (m->sums.group[id].allocations && m->sums.group[id].first_ns < to->first_ns)
		to->first_ns = m->sums.group[id].first_ns;
	for (uint32_t i = 0; c && c->level && i < c->known && i < l->known; i++)
		to->level[i] += c->level[i];
}

static int fastest(const void *a, const void *b)
{
	const struct curve *x = a, *y = b;

	if (x->rise != y->rise)
		return x->rise < y->rise ? 1 : -1;
	return x->place->position < y->place->position ? -1
						       : x->place->position > y->place->position;
}

/* Fills the list.  @only: shape; GROWTH_UNKNOWN: all. */
static int fill_list(struct growth_list *l, const struct model *m, const struct places *p,
		     enum growth only)
{
	size_t n = 0;

	l->places = p;
	l->known = m->sums.shapes.now < SHAPE_POINTS ? m->sums.shapes.now : SHAPE_POINTS;
	l->middle = l->known / 2;
	l->at = calloc(p->at.n + 1, sizeof(*l->at));
	if (!l->at)
		return -ENOMEM;
	for (size_t i = 0; i < p->at.n; i++)
		l->at[i] = (struct curve){.place = &p->at.at[i], .first_ns = UINT64_MAX};
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		if (p->of_stack[id] != PLACE_NONE)
			add_stack(l, m, id);
	}
	for (size_t i = 0; i < p->at.n; i++) {
		struct curve *c = &l->at[i];

		c->shape = growth_of_sum(m, &c->place->sum, c->first_ns, c->level, l->known);
		if (l->middle)
			c->rise = (int64_t)(c->level[l->known - 1] - c->level[l->middle - 1]);
		if (only == GROWTH_UNKNOWN || c->shape == only)
			l->at[n++] = *c;
	}
	l->n = n;
	qsort(l->at, n, sizeof(*l->at), fastest);
	return 0;
}

static uint64_t middle_ns(const struct growth_list *l, const struct model *m)
{
	return l->middle * m->sums.shapes.point_ns;
}

static void put_site(yajl_gen g, const struct growth_list *l, const struct model *m,
		     const struct curve *c)
{
	double minutes = (double)(m->facts.end_ns - middle_ns(l, m)) / MINUTE_NS;

	yajl_gen_map_open(g);
	site_where(g, c->place, l->places->by);
	json_number(g, "stacks", c->place->stacks);
	json_number(g, "backtrace_id", c->place->example);
	json_text(g, "shape", growth_name(c->shape));
	json_integer(g, "growth_bytes", c->rise);
	json_name(g, "growth_per_minute");
	if (l->middle && minutes > 0)
		yajl_gen_integer(g, llround((double)c->rise / minutes));
	else
		yajl_gen_null(g);
	json_number(g, "leaked_bytes", c->place->sum.live_bytes);
	json_number(g, "leaked_count", c->place->sum.live_blocks);
	json_number(g, "allocated_count", c->place->sum.allocations);
	json_number(g, "size", c->place->sum.allocated_bytes);
	json_name(g, "levels");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; i < l->known; i++)
		yajl_gen_integer(g, (long long)c->level[i]);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

static int write_growth(const struct growth_list *l, const struct model *m, const struct view *v,
			FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_info(g, m);
	json_text(g, "group_by", group_by_text(l->places->by));
	json_timeval(g, "point", m->sums.shapes.point_ns);
	json_timeval(g, "growth_since", middle_ns(l, m));
	json_name(g, "sites");
	yajl_gen_array_open(g);
	for (uint64_t i = v->skip; i < view_end(v, l->n); i++)
		put_site(g, l, m, &l->at[i]);
	yajl_gen_array_close(g);
	json_number(g, "total_count", l->n);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ferror(out) ? -EIO : 0;
}

int growth_list_write(struct model *m, const struct growth_list_options *o, FILE *out)
{
	struct growth_list l = {0};
	struct places p;
	int ret = places_find(m, o->by, COST_LEAKED, true, &p);

	if (ret)
		return ret;
	ret = fill_list(&l, m, &p, o->only);
	if (!ret)
		ret = write_growth(&l, m, &o->view, out);
	free(l.at);
	places_free(&p);
	return ret;
}
