/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/history/links.h"

static uint32_t take_link(struct links *l)
{
	uint32_t i = l->unused;

	if (i) {
		l->unused = l->pool.at[i].next;
		return i;
	}
	if (!l->pool.n && vec_push(&l->pool, (struct link){0}))
		return 0;
	return vec_push(&l->pool, (struct link){0}) ? 0 : (uint32_t)l->pool.n - 1;
}

int links_add(struct links *l, uint32_t chain, uint64_t value, uint64_t n)
{
	uint32_t i;

	if (vec_reach(&l->head, chain))
		return -ENOMEM;
	i = l->head.at[chain];
	if (i && l->pool.at[i].value == value) {
		l->pool.at[i].count += n;
		return 0;
	}
	i = take_link(l);
	if (!i)
		return -ENOMEM;
	l->pool.at[i] = (struct link){value, n, l->head.at[chain]};
	l->head.at[chain] = i;
	return 0;
}

const struct link *links_of(const struct links *l, uint32_t chain)
{
	return chain < l->head.n && l->head.at[chain] ? &l->pool.at[l->head.at[chain]] : NULL;
}

const struct link *links_next(const struct links *l, const struct link *at)
{
	return at->next ? &l->pool.at[at->next] : NULL;
}

void links_clear(struct links *l, uint32_t chain)
{
	uint32_t i = chain < l->head.n ? l->head.at[chain] : 0, next;

	for (; i; i = next) {
		next = l->pool.at[i].next;
		l->pool.at[i].next = l->unused;
		l->unused = i;
	}
	if (chain < l->head.n)
		l->head.at[chain] = 0;
}

void links_free(struct links *l)
{
	vec_free(&l->pool);
	vec_free(&l->head);
	l->unused = 0;
}
