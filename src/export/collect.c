/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/collect.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/by_number.h"
#include "model/model.h"
#include "model/selection.h"

#define SLACK 4096u /* entries beyond twice the wanted ones, before the surplus is dropped */

struct collector {
	const struct model *m;
	const struct view *v;
	const struct allocation *after; /* NULL: from the first */
	struct history *h;
	struct allocations *a;
	uint64_t wanted;
};

static int compare(const struct allocation *x, const struct allocation *y)
{
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return 0;
}

static int by_ordinal(const struct allocation *x, const struct allocation *y)
{
	return x->block.ordinal < y->block.ordinal ? -1 : x->block.ordinal > y->block.ordinal;
}

/* Equal keys stay in the order of the recording. */
static int ascending(const void *a, const void *b)
{
	int order = compare(a, b);

	return order ? order : by_ordinal(a, b);
}

static int descending(const void *a, const void *b)
{
	int order = compare(b, a);

	return order ? order : by_ordinal(a, b);
}

static int compare_in(const struct collector *c, const struct allocation *x,
		      const struct allocation *y)
{
	return c->v->descending ? descending(x, y) : ascending(x, y);
}

static void cut_to_wanted(struct collector *c)
{
	if (c->a->at.n)
		qsort(c->a->at.at, c->a->at.n, sizeof(c->a->at.at[0]),
		      c->v->descending ? descending : ascending);
	if (c->a->at.n > c->wanted)
		c->a->at.n = c->wanted;
}

/* Drops the ends of chains of which no entry is wanted.  All entries of a chain come before its end, so
 * none is added later. */
static int cut_chains(struct collector *c)
{
	uint64_t *wanted, n = 0;

	cut_to_wanted(c);
	wanted = malloc((c->a->at.n + 1) * sizeof(*wanted));
	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < c->a->at.n; i++)
		wanted[i] = c->a->at.at[i].chain;
	qsort(wanted, c->a->at.n, sizeof(*wanted), by_number);
	vec_for_each (&c->a->chains, end) {
		if (bsearch(&end->chain, wanted, c->a->at.n, sizeof(*wanted), by_number))
			c->a->chains.at[n++] = *end;
	}
	c->a->chains.n = n;
	free(wanted);
	return 0;
}

/* Return: whether there are many more of @n elements than of wanted entries. */
static bool is_too_many(const struct collector *c, size_t n)
{
	return c->wanted < UINT64_MAX / 4 && n >= 2 * c->wanted + SLACK;
}

static uint64_t key_of(const struct collector *c, const struct allocation *a)
{
	switch ((enum allocation_key)c->v->sort) {
	case BY_ADDRESS:
		return a->block.addr;
	case BY_SIZE:
		return a->block.size;
	case BY_LIFETIME:
		return a->end_ns - a->block.time_ns;
	default:
		return a->block.time_ns;
	}
}

static uint32_t stack_of_end(const struct mp_event *by)
{
	bool has = by->kind == EV_REALLOC_END || (by->kind == EV_FREE && by->flags & EV_F_STACK);

	return has ? by->stack : 0;
}

static int add(struct collector *c, const struct model_block *b, const struct mp_event *by)
{
	struct history_chain chain = history_chain(c->h, b);
	struct allocation a = {.block = *b,
			       .ended = by,
			       .end_ns = by ? by->time_ns : c->m->facts.end_ns,
			       .end_tid = by ? by->tid : 0,
			       .end_stack = by ? stack_of_end(by) : 0,
			       .chain = chain.ordinal,
			       .position = chain.length - 1};

	if (c->m->source.selection && !selection_has(c->m->source.selection, b))
		return 0;
	c->a->total++;
	if (a.end_ns < b->time_ns)
		a.end_ns = b->time_ns;
	a.key = key_of(c, &a);
	if (c->after && compare_in(c, &a, c->after) <= 0)
		return 0;
	if (vec_push(&c->a->at, a))
		return -ENOMEM;
	if (is_too_many(c, c->a->at.n))
		cut_to_wanted(c);
	return 0;
}

static int end_chain(struct collector *c, const struct model_block *last, const struct mp_event *by)
{
	struct history_chain chain = history_chain(c->h, last);
	struct chain_end end = {.chain = chain.ordinal,
				.length = chain.length,
				.first_ns = chain.time_ns,
				.ended = by,
				.end_ns = by ? by->time_ns : c->m->facts.end_ns,
				.end_tid = by ? by->tid : 0};

	if (chain.length == 1)
		return 0;
	if (is_too_many(c, c->a->chains.n) && cut_chains(c))
		return -ENOMEM;
	return vec_push(&c->a->chains, end);
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	struct collector *c = ctx;
	int ret = add(c, b, by);

	return ret || history_continues(by, how) ? ret : end_chain(c, b, by);
}

static int on_live(void *ctx, const struct model_block *b)
{
	int ret = add(ctx, b, NULL);

	return ret ? ret : end_chain(ctx, b, NULL);
}

static int by_chain(const void *a, const void *b)
{
	const struct chain_end *x = a, *y = b;

	return x->chain < y->chain ? -1 : x->chain > y->chain;
}

int allocations_collect(const struct model *m, const struct view *v, const struct allocation *after,
			struct allocations *a, struct mp_err *err)
{
	struct collector c = {.m = m, .v = v, .after = after, .a = a, .wanted = v->skip + v->count};
	struct history_sink sink = {.faulted = on_live, .ended = on_ended, .ctx = &c};
	struct mpf_reader *r = NULL;
	struct mp_info info;
	int ret;

	*a = (struct allocations){0};
	if (v->count > UINT64_MAX - v->skip)
		c.wanted = UINT64_MAX;
	c.h = history_new(&sink);
	ret = c.h ? mpf_open(m->source.path, &r, &info, err)
		  : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret) {
		history_tell(c.h, &m->source.progress);
		ret = history_read(c.h, r, NULL, err);
	}
	if (!ret && history_live(c.h, on_live, &c))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	mpf_reader_free(r);
	history_free(c.h);
	cut_to_wanted(&c);
	if (a->chains.n)
		qsort(a->chains.at, a->chains.n, sizeof(a->chains.at[0]), by_chain);
	if (ret)
		allocations_free(a);
	return ret;
}

void allocations_free(struct allocations *a)
{
	vec_free(&a->at);
	vec_free(&a->chains);
}

const struct chain_end *allocations_chain(const struct allocations *a, const struct allocation *at)
{
	struct chain_end key = {.chain = at->chain};

	if (!a->chains.n)
		return NULL;
	return bsearch(&key, a->chains.at, a->chains.n, sizeof(key), by_chain);
}
