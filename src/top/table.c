/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/filter/pattern.h"
#include "model/model.h"
#include "top/past.h"
#include "top/table_rows.h"

static int out_of_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* ------------------------------------------------------------------ filter -- */

/* Return: 1 or 0, or a negative errno with @err. */
static int matches(const struct table_view *v, const struct frame *f, struct mp_err *err)
{
	const char *text[] = {f->library, f->function, f->raw_function, f->source};
	/* The rest of a library's frame is that of an example, which can be another one soon. */
	size_t n = v->by == TABLE_LIBRARY ? 1 : sizeof(text) / sizeof(text[0]);
	int ret = !v->filter;

	for (size_t i = 0; !ret && i < n; i++) {
		if (text[i])
			ret = pattern_find(v->filter, text[i], err);
	}
	return ret;
}

/* ------------------------------------------------------------------ order -- */

struct entry {
	const struct table_row *row;
	double value; /* not of names; the highest one comes first */
	enum table_by by;
	bool reverse;
};

static double value_of(const struct table_row *r, enum table_sort sort)
{
	switch (sort) {
	case TABLE_LIVE:
		return (double)r->live_bytes;
	case TABLE_BLOCKS:
		return (double)r->live_blocks;
	case TABLE_GROWTH:
		return r->growth;
	case TABLE_SINCE_MARK:
		return (double)r->since_mark;
	case TABLE_ALLOCATIONS:
		return r->allocations;
	case TABLE_ALLOCATED:
		return r->allocated_bytes;
	case TABLE_TEMPORARY:
		return r->temporary;
	default:
		return 0;
	}
}

/* The order of equal rows. */
static int steady(const struct table_row *x, const struct table_row *y)
{
	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->value < y->value || x->value > y->value)
		return (x->value < y->value) != x->reverse ? 1 : -1;
	return steady(x->row, y->row);
}

static int compare_texts(const char *x, const char *y)
{
	return strcmp(x ? x : "", y ? y : "");
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const struct frame *f = &x->row->at, *g = &y->row->at;
	int order;

	if (x->by == TABLE_LIBRARY) {
		order = compare_texts(f->library, g->library);
	} else {
		order = strcmp(f->function, g->function);
		if (!order)
			order = compare_texts(f->source, g->source);
		if (!order)
			order = f->line < g->line ? -1 : f->line > g->line;
	}
	if (order)
		return x->reverse ? -order : order;
	return steady(x->row, y->row);
}

/* ------------------------------------------------------------------ table -- */

/* What a table is made of. */
struct maker {
	struct table *t;
	const struct table_view *v;
	VEC(struct entry) shown;
	struct table_sums sum; /* of those */
	double span;
	bool sampled;
};

/* Return: 0, or a negative errno with @err. */
static int show(struct maker *k, struct table_found *f, struct mp_err *err)
{
	struct entry e = {.row = &f->row, .by = k->v->by, .reverse = k->v->reverse};
	int ret;

	if (!table_sums_are_busy(&f->sums))
		return 0;
	ret = matches(k->v, &f->row.at, err);
	if (ret < 0)
		return ret;
	if (!ret) {
		k->t->left_out++;
		return 0;
	}
	table_sums_show(&f->sums, k->span, k->sampled, &f->row);
	table_sums_add(&k->sum, &f->sums);
	e.value = value_of(&f->row, k->v->sort);
	return vec_push(&k->shown, e) ? out_of_memory(err) : 0;
}

static int fill_table(struct maker *k, struct mp_err *err)
{
	vec_sort(&k->shown, k->v->sort == TABLE_NAME ? by_name : by_value);
	vec_for_each (&k->shown, e) {
		if (vec_push(&k->t->rows, *e->row))
			return out_of_memory(err);
	}
	k->t->sum.at.function = "";
	table_sums_show(&k->sum, k->span, k->sampled, &k->t->sum);
	return 0;
}

int table_make(struct model *m, const struct past *past, const struct table_view *v,
	       struct table *t, struct mp_err *err)
{
	struct maker k = {
	    .t = t, .v = v, .span = past_span(past), .sampled = m->info.sample_interval != 0};
	struct table_rows found;
	int ret = 0;

	*t = (struct table){.has_live = v->by != TABLE_THREAD};
	if (table_rows_find(m, past, v, &t->names, &found))
		ret = out_of_memory(err);
	vec_for_each (&found.at, f)
		ret = ret ? ret : show(&k, f, err);
	if (!ret)
		ret = fill_table(&k, err);
	table_rows_free(&found);
	vec_free(&k.shown);
	if (ret)
		table_free(t);
	return ret;
}

void table_free(struct table *t)
{
	vec_for_each (&t->names.at, name)
		free(*name);
	vec_free(&t->names.at);
	vec_free(&t->rows);
	*t = (struct table){0};
}

uint32_t table_find(const struct table *t, uint64_t key)
{
	uint32_t i;

	for (i = 0; i < t->rows.n; i++) {
		if (t->rows.at[i].key == key)
			break;
	}
	return i;
}
