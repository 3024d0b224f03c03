/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Blocks that one slot of several blocks leads to.  In a list that is an old value in another block,
 * which is of the same size but no node any more, or never was.  Of the blocks that lead there one is
 * chosen: one that a block leads to itself, else one that a variable or an array leads to.
 */
#include <errno.h>
#include "leaks/types/shape.h"
#include "lib/bitmap.h"

struct shared {
	uint32_t to, best; /* best: of the blocks that lead there, so far; or INDEX_NONE */
	uint8_t slot, score;
};

struct chooser {
	struct shapes *s;
	VEC(struct shared) list; /* by block and slot */
	uint64_t *is_shared,
	    *is_listed; /* bitmaps by block; listed: arrays or variables lead there */
};

static int by_place(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Makes the list of shared blocks, each once. */
static int collect(struct chooser *c)
{
	size_t n = 0;

	vec_for_each (&c->s->shared, it) {
		const struct shared fresh = {it->to, INDEX_NONE, it->slot, 0};

		bitmap_set(c->is_shared, it->to);
		if (vec_push(&c->list, fresh))
			return -ENOMEM;
	}
	vec_sort(&c->list, by_place);
	for (size_t i = 0; i < c->list.n; i++) {
		if (!n || by_place(&c->list.at[n - 1], &c->list.at[i]))
			c->list.at[n++] = c->list.at[i];
	}
	c->list.n = n;
	return 0;
}

static void note_listed(struct chooser *c)
{
	const struct graph *g = c->s->g;

	vec_for_each (&c->s->arrays, a) {
		for (uint32_t e = g->first[a->block]; e < g->first[a->block + 1]; e++)
			bitmap_set(c->is_listed, g->to.at[e]);
	}
	vec_for_each (&g->roots, r) {
		if (r->kind == ROOT_GLOBAL)
			bitmap_set(c->is_listed, r->block);
	}
}

/* Chooses between the blocks seen so far that lead to a shared one, and @block. */
static void choose(struct chooser *c, uint32_t block, uint8_t slot, uint32_t to)
{
	const struct shared key = {.to = to, .slot = slot};
	struct shared *it = vec_search(&c->list, &key, by_place);
	const uint8_t score =
	    (uint8_t)(2 * (c->s->block[block].mark >> slot & 1) + bitmap_has(c->is_listed, block));

	if (!it)
		return;
	if (it->best == INDEX_NONE || score > it->score) {
		if (it->best != INDEX_NONE)
			c->s->link[slot][it->best] = 0;
		it->best = block;
		it->score = score;
	} else {
		c->s->link[slot][block] = 0;
	}
}

static void choose_all(struct chooser *c)
{
	struct shapes *s = c->s;

	for (uint32_t i = 0; i < s->g->n; i++) {
		const struct shape_nodes *nodes = shape_nodes_of(s, i);

		for (uint8_t p = 0; nodes && p < nodes->n; p++) {
			const uint32_t to = shape_next(s, p, i);

			if (to != INDEX_NONE && !nodes->slot[p].many &&
			    bitmap_has(c->is_shared, to))
				choose(c, i, p, to);
		}
	}
}

int shape_shared(struct shapes *s)
{
	const size_t words = s->g->n / 64 + (size_t)1;
	struct chooser c = {.s = s,
			    .is_shared = calloc(words, sizeof(uint64_t)),
			    .is_listed = calloc(words, sizeof(uint64_t))};
	int ret = c.is_shared && c.is_listed ? 0 : -ENOMEM;

	if (!ret && s->shared.n) {
		ret = collect(&c);
		if (!ret) {
			note_listed(&c);
			choose_all(&c);
		}
	}
	free(c.is_shared);
	free(c.is_listed);
	vec_free(&c.list);
	return ret;
}
