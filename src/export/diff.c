/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/session.h"
#include "model/model.h"
#include "model/sums/at_time.h"

/* ------------------------------------------------------------------ frames -- */

static bool same_build(const struct model *other, const struct mp_module *mod)
{
	if (!mod || !mod->build_id_len)
		return false;
	vec_for_each (&other->facts.modules, o) {
		if (o->build_id_len == mod->build_id_len &&
		    !memcmp(o->build_id, mod->build_id, mod->build_id_len))
			return true;
	}
	return false;
}

/* Maps "libz.so.1.2.13" to "libz.so", and the program to "", whatever its name. */
static int library_length(const struct model *m, const struct mp_module *mod, const char *library)
{
	const char *so;

	if (!library || (mod && m->info.executable && !strcmp(mod->path, m->info.executable)))
		return 0;
	so = strstr(library, ".so.");
	return so ? (int)(so + 3 - library) : (int)strlen(library);
}

static uint32_t frame_key(struct diff *d, const struct model *m, const struct model *other,
			  struct frame *f)
{
	const struct mp_module *mod = model_module(m, f->address);
	bool lines = m == other || same_build(other, mod), known = f->raw_function || f->source;
	int n = library_length(m, mod, f->library);
	uint32_t id;
	char *key;

	if (!lines)
		f->line = f->column = 0;
	if (!known && !lines)
		f->function = "(unknown)";
	if (asprintf(&key, "%s\n%.*s\n%u", f->function, n, n ? f->library : "", f->line) < 0)
		return 0;
	id = intern_text(d->frames, key, NULL);
	free(key);
	return id;
}

/* Return: id of chain @parent extended by @f; 0 when out of memory. */
static uint32_t extend(struct diff *d, uint32_t parent, const struct model *m,
		       const struct model *other, struct frame *f)
{
	struct diff_node n = {.parent = parent,
			      .depth = parent ? d->nodes.at[parent - 1].depth + 1 : 0};
	uint32_t key = frame_key(d, m, other, f), id;
	bool fresh;

	if (!key)
		return 0;
	n.frame = *f;
	id = intern_pair(d->chains, parent, key, &fresh);
	return fresh && vec_push(&d->nodes, n) ? 0 : id;
}

static uint32_t chain_of(struct diff *d, struct model *m, const struct model *other, uint32_t stack)
{
	const struct model_stack *s = &m->stacks.at[stack];
	struct frame mark = {.function = s->n ? "(incomplete)" : "(no stack)"};
	uint32_t at = 0;

	if (!s->n || !(s->flags & SS_STACK_COMPLETE)) {
		at = extend(d, at, m, other, &mark);
		if (!at)
			return 0;
	}
	for (uint32_t i = s->n; i-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(m, m->stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0) {
			at = extend(d, at, m, other, &f[n]);
			if (!at)
				return 0;
		}
	}
	return at;
}

/* ------------------------------------------------------------------ rows -- */

struct row_index {
	VEC(uint32_t) of_node; /* [node]: row + 1 */
};

static struct diff_row *row_of(struct diff *d, struct row_index *index, uint32_t node)
{
	struct diff_row fresh = {.node = node};

	if (vec_reach(&index->of_node, node))
		return NULL;
	if (!index->of_node.at[node]) {
		if (vec_push(&d->rows, fresh))
			return NULL;
		index->of_node.at[node] = (uint32_t)d->rows.n;
	}
	return &d->rows.at[index->of_node.at[node] - 1];
}

static double variance_of(const struct group *g, enum cost cost)
{
	switch (cost) {
	case COST_LEAKED:
		return g->variance_live;
	case COST_ALLOCATED:
		return g->variance_allocated;
	case COST_COUNT:
		return g->variance_allocations;
	default:
		return 0; /* not known */
	}
}

static int add_side(struct diff *d, int which, struct row_index *index, const struct group *group)
{
	struct diff_side *side = &d->side[which];
	const struct model *other = d->side[!which].m;

	for (uint32_t id = 0; id < side->m->stacks.n; id++) {
		uint64_t cost = group_cost(&group[id], d->cost);
		uint64_t count = group_count(&group[id], d->cost);
		struct diff_row *row;
		uint32_t chain;

		if (!cost && !count)
			continue;
		chain = chain_of(d, side->m, other, id);
		row = chain ? row_of(d, index, chain - 1) : NULL;
		if (!row)
			return -ENOMEM;
		*(which ? &row->after : &row->before) += cost;
		*(which ? &row->after_count : &row->before_count) += count;
		side->cost += cost;
		side->variance += variance_of(&group[id], d->cost);
		side->count += count;
	}
	return 0;
}

static uint64_t change(const struct diff_row *r)
{
	return r->after > r->before ? r->after - r->before : r->before - r->after;
}

static int largest(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	if (change(x) != change(y))
		return change(x) < change(y) ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

int diff_make(const struct diff_side *before, const struct diff_side *after, enum cost cost,
	      struct diff *d, struct mp_err *err)
{
	struct row_index index = {0};
	int ret = 0;

	memset(d, 0, sizeof(*d));
	d->side[0] = *before;
	d->side[1] = *after;
	d->cost = cost;
	d->frames = intern_new();
	d->chains = intern_new();
	if (!d->frames || !d->chains)
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	for (int i = 0; i < 2 && !ret; i++) {
		struct group *groups = NULL;

		if (d->side[i].has_moment)
			ret = at_time_groups(d->side[i].m, d->side[i].at_ns, &groups, err);
		if (!ret && add_side(d, i, &index, groups ? groups : d->side[i].m->sums.group))
			ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
		free(groups);
	}
	vec_free(&index.of_node);
	if (ret)
		diff_free(d);
	else
		vec_sort(&d->rows, largest);
	return ret;
}

void diff_free(struct diff *d)
{
	intern_free(d->frames);
	intern_free(d->chains);
	vec_free(&d->nodes);
	vec_free(&d->rows);
	memset(d, 0, sizeof(*d));
}
