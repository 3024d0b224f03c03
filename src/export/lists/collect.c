/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/collect.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/by_number.h"

#define SLACK 4096u /* entries beyond twice the wanted ones, before the surplus is dropped */

struct collector {
	const struct view *v;
	const struct allocation *after; /* NULL: from the first */
	struct allocations *a;
	uint64_t wanted;
};

static int ascending(const void *a, const void *b)
{
	return allocation_compare(a, b, false);
}

static int descending(const void *a, const void *b)
{
	return allocation_compare(a, b, true);
}

static void cut_to_wanted(struct collector *c)
{
	vec_sort(&c->a->at, c->v->descending ? descending : ascending);
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

static int on_one(void *ctx, const struct allocation *one)
{
	struct collector *c = ctx;

	c->a->total++;
	if (c->after && allocation_compare(one, c->after, c->v->descending) <= 0)
		return 0;
	if (vec_push(&c->a->at, *one))
		return -ENOMEM;
	if (is_too_many(c, c->a->at.n))
		cut_to_wanted(c);
	return 0;
}

static int on_chain(void *ctx, const struct chain_end *end)
{
	struct collector *c = ctx;

	if (is_too_many(c, c->a->chains.n) && cut_chains(c))
		return -ENOMEM;
	return vec_push(&c->a->chains, *end);
}

int allocations_collect(const struct model *m, const struct view *v, const struct allocation *after,
			struct allocations *a, struct mp_err *err)
{
	struct collector c = {.v = v, .after = after, .a = a, .wanted = v->skip + v->count};
	struct allocation_sink sink = {.one = on_one, .chain = on_chain, .ctx = &c};
	int ret;

	*a = (struct allocations){0};
	if (v->count > UINT64_MAX - v->skip)
		c.wanted = UINT64_MAX;
	ret = allocations_pass(m, v->sort, &sink, err);
	cut_to_wanted(&c);
	vec_sort(&a->chains, by_number);
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
	return vec_search(&a->chains, &at->chain, by_number);
}
