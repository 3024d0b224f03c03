/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/bitmap.h"

struct mark_queue {
	VEC(uint32_t) list;
	size_t next;
};

/* Follows edges from the queued blocks to blocks not yet in @seen.  @parent can be NULL. */
static int spread(const struct graph *g, struct mark_queue *q, uint64_t *seen, uint32_t *parent)
{
	while (q->next < q->list.n) {
		uint32_t b = q->list.at[q->next++];

		for (uint32_t e = g->first[b]; e < g->first[b + 1]; e++) {
			uint32_t to = g->to.at[e];

			if (e + 16 < g->to.n)
				__builtin_prefetch(&seen[g->to.at[e + 16] / 64]);
			if (bitmap_has(seen, to))
				continue;
			bitmap_set(seen, to);
			if (parent)
				parent[to] = b;
			if (vec_push(&q->list, to))
				return -ENOMEM;
		}
	}
	return 0;
}

static bool passing(enum root_kind kind)
{
	return kind == ROOT_REGISTER || kind == ROOT_STACK;
}

/* Marks what is reachable from roots.  @without: a block to be ignored as a root's target.
 * @lasting: ignore registers and stacks. */
static int from_roots(const struct graph *g, uint64_t *seen, uint32_t *parent, uint32_t without,
		      bool lasting)
{
	struct mark_queue q = {0};
	int ret = 0;

	vec_for_each (&g->roots, r) {
		if (r->block == without || bitmap_has(seen, r->block) ||
		    (lasting && passing(r->kind)))
			continue;
		bitmap_set(seen, r->block);
		if (parent)
			parent[r->block] = INDEX_NONE;
		if (vec_push(&q.list, r->block)) {
			ret = -ENOMEM;
			break;
		}
	}
	if (!ret)
		ret = spread(g, &q, seen, parent);
	vec_free(&q.list);
	return ret;
}

/* Makes @head a direct leak, and the owner of all blocks that it reaches and that are not yet in
 * @seen. */
static int claim(const struct graph *g, struct leaks *l, uint64_t *seen, uint32_t head, bool cycle)
{
	struct leak leak = {.block = head, .cycle = cycle};
	struct mark_queue q = {0};
	int ret;

	bitmap_set(seen, head);
	ret = vec_push(&q.list, head);
	if (!ret)
		ret = spread(g, &q, seen, NULL);
	for (size_t i = 0; i < q.list.n && !ret; i++) {
		l->owner[q.list.at[i]] = (uint32_t)l->direct.n + 1;
		if (i)
			leak.indirect_bytes += g->block[q.list.at[i]].size;
	}
	leak.indirect_count = (uint32_t)q.list.n - 1;
	vec_free(&q.list);
	return ret ? ret : vec_push(&l->direct, leak);
}

struct search_step {
	uint32_t block, edge;
};

/* Depth-first search from @start over blocks not in @seen; appends them to @finished in order of
 * finishing. */
static int finish_search(const struct graph *g, uint64_t *seen, uint32_t start,
			 struct mark_queue *finished)
{
	VEC(struct search_step) stack = {0};
	struct search_step f = {start, g->first[start]};
	int ret = vec_push(&stack, f);

	bitmap_set(seen, start);
	while (!ret && stack.n) {
		struct search_step *top = &stack.at[stack.n - 1];

		if (top->edge == g->first[top->block + 1]) {
			ret = vec_push(&finished->list, top->block);
			stack.n--;
			continue;
		}
		f.block = g->to.at[top->edge++];
		f.edge = g->first[f.block];
		if (!bitmap_has(seen, f.block)) {
			bitmap_set(seen, f.block);
			ret = vec_push(&stack, f);
		}
	}
	vec_free(&stack);
	return ret;
}

/*
 * Claims the remaining leaks, all reached from cycles.  The block that a depth-first search
 * finishes last is on a cycle into which nothing else points.  Going backwards, so is each block
 * that is not claimed yet.
 */
static int claim_cycles(const struct graph *g, struct leaks *l, uint64_t *seen)
{
	uint64_t *visited = bitmap_new(g->n);
	struct mark_queue order = {0};
	int ret = visited ? 0 : -ENOMEM;

	if (!ret)
		memcpy(visited, seen, (g->n / 64 + 1ull) * sizeof(*seen));
	for (uint32_t i = 0; i < g->n && !ret; i++) {
		if (!bitmap_has(visited, i))
			ret = finish_search(g, visited, i, &order);
	}
	while (!ret && order.list.n) {
		uint32_t b = order.list.at[--order.list.n];

		if (!bitmap_has(seen, b))
			ret = claim(g, l, seen, b, true);
	}
	vec_free(&order.list);
	free(visited);
	return ret;
}

int mark_leaks(const struct graph *g, struct leaks *l)
{
	uint64_t *seen = bitmap_new(g->n), *pointed = bitmap_new(g->n);
	int ret = -ENOMEM;

	memset(l, 0, sizeof(*l));
	l->owner = calloc(g->n + 1ull, sizeof(*l->owner));
	if (seen && pointed && l->owner)
		ret = from_roots(g, seen, NULL, INDEX_NONE, false);
	for (uint32_t b = 0; b < g->n && !ret; b++) {
		if (bitmap_has(seen, b))
			continue;
		l->total_count++;
		l->total_bytes += g->block[b].size;
		for (uint32_t e = g->first[b]; e < g->first[b + 1]; e++)
			bitmap_set(pointed, g->to.at[e]);
	}
	if (!ret && l->total_count) {
		for (uint32_t b = 0; b < g->n && !ret; b++) {
			if (!bitmap_has(seen, b) && !bitmap_has(pointed, b))
				ret = claim(g, l, seen, b, false);
		}
		if (!ret)
			ret = claim_cycles(g, l, seen);
	}
	free(seen);
	free(pointed);
	return ret;
}

void leaks_keep(struct leaks *l, const struct graph *g, uint32_t *keep)
{
	uint32_t kept = 0;

	for (size_t i = 0; i < l->direct.n; i++) {
		if (keep[i]) {
			l->direct.at[kept] = l->direct.at[i];
			keep[i] = ++kept;
		}
	}
	l->direct.n = kept;
	for (uint32_t b = 0; b < g->n; b++) {
		if (!l->owner[b])
			continue;
		l->owner[b] = keep[l->owner[b] - 1];
		if (!l->owner[b]) {
			l->total_count--;
			l->total_bytes -= g->block[b].size;
		}
	}
}

void leaks_free(struct leaks *l)
{
	vec_free(&l->direct);
	free(l->owner);
	memset(l, 0, sizeof(*l));
}

int mark_path(const struct graph *g, uint32_t block, struct path *path)
{
	uint32_t *parent = calloc(g->n + 1ull, sizeof(*parent));
	uint64_t *seen = bitmap_new(g->n);
	int ret = parent && seen ? 0 : -ENOMEM;

	memset(path, 0, sizeof(*path));
	/* Prefers globals, which explain more: references from stacks and registers are temporary.
	 */
	if (!ret)
		ret = from_roots(g, seen, parent, INDEX_NONE, true);
	if (!ret && !bitmap_has(seen, block))
		ret = from_roots(g, seen, parent, INDEX_NONE, false);
	if (!ret && !bitmap_has(seen, block))
		ret = -ENOENT;
	for (uint32_t b = block; !ret; b = parent[b]) {
		ret = vec_push(&path->blocks, b);
		if (parent[b] == INDEX_NONE)
			break;
	}
	for (size_t i = 0; i < path->blocks.n / 2; i++) {
		uint32_t *a = &path->blocks.at[i], *z = &path->blocks.at[path->blocks.n - 1 - i];
		uint32_t t = *a;

		*a = *z;
		*z = t;
	}
	vec_for_each (&g->roots, r) {
		if (!ret && r->block == path->blocks.at[0])
			path->root = *r;
	}
	free(parent);
	free(seen);
	return ret;
}

int mark_retained(const struct graph *g, uint32_t block, uint32_t *count, uint64_t *bytes)
{
	uint64_t *all = bitmap_new(g->n), *without = bitmap_new(g->n);
	int ret = all && without ? 0 : -ENOMEM;

	*count = 0;
	*bytes = 0;
	if (!ret)
		ret = from_roots(g, all, NULL, INDEX_NONE, false);
	if (!ret) {
		bitmap_set(without, block); /* marked as seen, so that no path goes through it */
		ret = from_roots(g, without, NULL, block, false);
	}
	for (uint32_t b = 0; b < g->n && !ret; b++) {
		if (b == block || (bitmap_has(all, b) && !bitmap_has(without, b))) {
			++*count;
			*bytes += g->block[b].size;
		}
	}
	free(all);
	free(without);
	return ret;
}
