/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/semi_nca.h"

#include <errno.h>
#include <stdbool.h>
#include "lib/vec.h"

#define AHEAD 16 /* edges: so far ahead, memory that they need is fetched */

struct link {
	uint32_t up;	/* the ancestor to which the path is compressed */
	uint32_t least; /* the lowest semidominator on the path to it */
};

/* All by number. */
struct semi {
	struct reversed g;
	const uint32_t *parent; /* in the search tree */
	struct link *link;
	uint32_t *semi;
	VEC(uint32_t) path;
};

/* The lowest semidominator on the path from @v up to, not including, the last node below @linked.
 * Compresses the path. */
static int lowest(struct semi *s, uint32_t v, uint32_t linked, uint32_t *result)
{
	struct link *const link = s->link;
	uint32_t up, least;

	if (link[v].up < linked) {
		*result = link[v].least;
		return 0;
	}
	s->path.n = 0;
	do {
		if (vec_push(&s->path, v))
			return -ENOMEM;
		v = link[v].up;
	} while (link[v].up >= linked);
	up = link[v].up;
	least = link[v].least;
	while (s->path.n) {
		v = s->path.at[--s->path.n];
		link[v].up = up;
		if (link[v].least < least)
			least = link[v].least;
		else
			link[v].least = least;
	}
	*result = least;
	return 0;
}

/*
 * The least semidominator of the nodes from the current one up to any other, as far as it is known:
 * lowest() cannot be below it.  Where one table leads to everything, this saves nearly all calls.
 * Going up from the current node, which is the last one of .step, each has a lower semidominator
 * than all before it.
 */
#define MAX_STEPS 64u
struct minima {
	struct {
		uint32_t at, semi;
	} step[MAX_STEPS];
	uint32_t n;
	uint32_t limit; /* nothing is known from this node on */
};

static void add_minimum(struct minima *m, uint32_t v, uint32_t semi)
{
	while (m->n && m->step[m->n - 1].semi >= semi)
		m->n--;
	if (m->n == MAX_STEPS) {
		m->limit = m->step[m->n - 1].at;
		m->n = 0;
	}
	m->step[m->n].at = v;
	m->step[m->n++].semi = semi;
}

/* Are the semidominators of all nodes above the current one, up to @v, at least @semi? */
static inline bool all_above(const struct minima *m, uint32_t v, uint32_t semi)
{
	uint32_t low = 0, high = m->n;

	if (v >= m->limit)
		return false;
	if (m->n && m->step[0].semi >= semi)
		return true;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (m->step[middle].at > v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->n && m->step[low].semi >= semi;
}

/* Finds the semidominator of @v.  Return: 0, 1: lowest() was not needed, or -ENOMEM. */
static int semidominator(struct semi *s, const struct minima *m, uint32_t v)
{
	const uint32_t begin = s->g.first[v], end = s->g.first[v + 1ull];
	uint32_t semi = s->parent[v], least;
	int ret = 1;

	/* Nodes with lower numbers are their own. */
	for (uint32_t e = begin; e < end; e++) {
		const uint32_t from = s->g.from[e] & ~REVERSED_FLAG;

		if (from < semi)
			semi = from;
	}
	for (uint32_t e = begin; e < end; e++) {
		const uint32_t from = s->g.from[e] & ~REVERSED_FLAG;

		if (from <= v || all_above(m, from, semi))
			continue;
		ret = 0;
		if (lowest(s, from, v + 1, &least))
			return -ENOMEM;
		if (least < semi)
			semi = least;
	}
	s->semi[v] = semi;
	s->link[v].least = semi;
	return ret;
}

static int semidominators(struct semi *s)
{
	struct minima m = {.n = 0, .limit = UINT32_MAX};
	int ret = 0;

	for (uint32_t v = s->g.n - 1; v && ret >= 0; v--) {
		/* The next node is the one before it.  It probably needs what the last one did. */
		for (uint32_t e = s->g.first[v]; !ret && e < s->g.first[v + 1ull]; e++) {
			if (e >= AHEAD && (s->g.from[e - AHEAD] & ~REVERSED_FLAG) >= v)
				__builtin_prefetch(&s->link[s->g.from[e - AHEAD] & ~REVERSED_FLAG]);
		}
		ret = semidominator(s, &m, v);
		add_minimum(&m, v, s->semi[v]);
	}
	return ret < 0 ? ret : 0;
}

int semi_nca(const struct reversed *g, uint32_t *idom, void *memory)
{
	struct semi s = {.g = *g, .parent = idom, .link = memory};
	int ret;

	s.semi = (uint32_t *)(s.link + g->n);
	for (uint32_t v = 0; v < g->n; v++)
		s.link[v] = (struct link){idom[v], v};
	ret = semidominators(&s);
	for (uint32_t v = 1; v < g->n && !ret; v++) {
		while (idom[v] > s.semi[v])
			idom[v] = idom[idom[v]];
	}
	vec_free(&s.path);
	return ret;
}
