/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/scan.h"

#include <errno.h>
#include <string.h>
#include "leaks/python/python.h"
#include "lib/bitmap.h"

/* Is one root of a block enough? */
static bool one_root(const struct scan *s)
{
	return !s->graph->detailed || s->root.kind == ROOT_MEMORY || s->root.kind == ROOT_CODE;
}

/* Is the block known as one that has a root, or an exact one, in this area?  Notes that it is. */
static bool rooted_already(struct graph *g, uint32_t block, bool exact)
{
	uint64_t *const rooted = exact ? g->rooted_exactly : g->rooted;
	const bool already = bitmap_has(rooted, block);

	bitmap_set(g->rooted, block);
	bitmap_set(rooted, block);
	return already;
}

static void add_root(struct scan *s, uint32_t block, uint64_t at, bool exact)
{
	struct graph *g = s->graph;
	struct root r = s->root;

	if (one_root(s) && rooted_already(g, block, exact))
		return;
	r.block = block;
	r.addr = at;
	r.exact = exact;
	if (vec_push(&g->roots, r))
		s->failed = true;
}

void scan_begin(struct scan *s, struct root root)
{
	struct graph *g = s->graph;

	if (scan_flush(s))
		return;
	if (g->detailed) {
		for (size_t i = g->area; i < g->roots.n; i++) {
			const uint32_t block = g->roots.at[i].block;

			bitmap_clear(g->rooted, block);
			bitmap_clear(g->rooted_exactly, block);
		}
		g->area = g->roots.n;
	}
	s->root = root;
}

static void set_first(struct scan *s, uint32_t from)
{
	while (s->done <= from)
		s->graph->first[s->done++] = (uint32_t)s->graph->to.n;
}

/* Notes that edge @e is exact. */
static void set_exact(struct scan *s, size_t e)
{
	struct graph *g = s->graph;

	if (vec_reach(&g->exact, e / 64))
		s->failed = true;
	else
		bitmap_set(g->exact.at, e);
}

/* Is it the address of the start of block @to, or of the object of Python in it?  Reading that from the list costs a cache miss, so
 * it is avoided where the index is sufficient. */
static bool is_start(const struct graph *g, const struct scan_pending *p, uint32_t to)
{
	if (g->python && g->python->type[to])
		return !p->tagged && p->value == python_start(g->python, to);
	if (p->tagged || !(p->record->starts >> (p->value >> 4 & 63) & 1))
		return false;
	return !(p->value & 15 || p->record->dense) || g->block[to].addr == p->value;
}

static void add_edge(struct scan *s, const struct scan_pending *p)
{
	struct graph *g = s->graph;
	uint32_t to = index_in(&g->index, p->record, p->value);
	bool exact;

	/* With tag bits, accepts only addresses of a block's very start: a number is not that by
	 * chance. */
	if (p->tagged && to != INDEX_NONE) {
		if (g->block[to].addr != (p->value & ~7ull))
			return;
		s->graph->tagged_words++;
	}
	exact = g->detailed && to != INDEX_NONE && is_start(g, p, to);
	if (p->from == INDEX_NONE) {
		if (to != INDEX_NONE)
			add_root(s, to, p->at, exact);
		return;
	}
	set_first(s, p->from);
	if (to == INDEX_NONE || to == p->from)
		return;
	/* A repeated edge to the same block is left out. */
	if ((g->to.n <= g->first[p->from] || g->to.at[g->to.n - 1] != to) &&
	    (g->to.n == UINT32_MAX || vec_push(&g->to, to)))
		s->failed = true;
	else if (exact)
		set_exact(s, g->to.n - 1);
}

/* @value is between the first and the last block. */
static inline void enqueue(struct scan *s, uint64_t value, bool tagged, uint64_t addr,
			   uint32_t from)
{
	const struct index_record *r = index_record(&s->graph->index, value);
	struct scan_pending *p;

	if (!r)
		return;
	__builtin_prefetch(r);
	p = &s->queue[s->head % SCAN_QUEUE];
	if (s->count == SCAN_QUEUE)
		add_edge(s, p);
	else
		s->count++;
	*p = (struct scan_pending){value, addr, r, from, tagged};
	s->head++;
}

static void scan_wide(struct scan *s, const uint64_t *word, size_t n, uint64_t addr, uint32_t from)
{
	const struct index *x = &s->graph->index;
	const uint64_t mask = (1ull << x->address_bits) - 1;

	for (size_t i = 0; i < n; i++) {
		uint64_t value = word[i] & mask;

		if (value - x->low < x->span)
			enqueue(s, value, word[i] > mask, addr + 8 * i, from);
	}
}

/* 32-bit addresses have no room for tags. */
static void scan_narrow(struct scan *s, const uint32_t *word, size_t n, uint64_t addr,
			uint32_t from)
{
	const struct index *x = &s->graph->index;

	for (size_t i = 0; i < n; i++) {
		if (word[i] - x->low < x->span)
			enqueue(s, word[i], false, addr + 4 * i, from);
	}
}

void scan_words(struct scan *s, const void *words, size_t n, uint64_t addr, uint32_t from)
{
	if (s->graph->arch->word_size == 4)
		scan_narrow(s, words, n, addr, from);
	else
		scan_wide(s, words, n, addr, from);
}

void scan_value(struct scan *s, uint64_t value, uint64_t addr, uint32_t from)
{
	uint32_t narrow = (uint32_t)value;

	if (s->graph->arch->word_size == 4)
		scan_narrow(s, &narrow, 1, addr, from);
	else
		scan_wide(s, &value, 1, addr, from);
}

void scan_unaligned(struct scan *s, const uint8_t *bytes, size_t n, uint64_t addr)
{
	const struct index *x = &s->graph->index;
	uint64_t value;

	for (size_t i = 0; i < n; i++) {
		memcpy(&value, bytes + i, sizeof(value));
		if (value - x->low < x->span)
			enqueue(s, value, false, addr + i, INDEX_NONE);
	}
}

int scan_flush(struct scan *s)
{
	while (s->count) {
		add_edge(s, &s->queue[(s->head - s->count) % SCAN_QUEUE]);
		s->count--;
	}
	return s->failed ? -ENOMEM : 0;
}

void scan_end(struct scan *s, uint32_t end)
{
	/* Whether it failed is still in .failed. */
	(void)scan_flush(s);
	if (end)
		set_first(s, end - 1);
}
