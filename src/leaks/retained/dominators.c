/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/dominators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/retained/semi_nca.h"
#include "lib/bitmap.h"
#include "lib/huge.h"
#include "lib/parallel.h"

#define AHEAD 16 /* edges: so far ahead, memory that they need is fetched */

/* The edges of holders and of the virtual node, which lead to holders, too. */
struct top {
	uint32_t *first, *to;
	uint64_t *exact;
};

/*
 * A node with its edges, in one or two cache lines:
 *	[0]	its number; before it is reached, UNREACHED and how many edges it has
 *	[1]	how many predecessors it has; then where the next of them goes in .from
 *	[2...]	the records that its edges lead to, as indexes of .record
 */
#define HEAD	  2u
#define UNREACHED (1u << 31)

/*
 * Nodes are renumbered in the order in which a depth-first search reaches them.  Nodes from .weak
 * on are reached only from weak holders; edges from them to others are left out.
 *
 * With many blocks, nearly all of the time goes into cache misses, so the arrays have what is
 * needed together, and are freed as early as possible.
 */
struct finder {
	struct graph *g;
	const struct dom_holders *h;
	struct top top;
	unsigned int parts;
	uint32_t nodes;		/* in all */
	uint32_t n, weak;	/* numbers */
	uint32_t *record, size; /* words */
	VEC(uint32_t) pending;
	uint32_t *vertex;	     /* by number: the record; after reverse() the node */
	uint32_t *parent;	     /* by number: in the search tree; later the dominator */
	uint32_t *from, *from_first; /* as in struct dominators */
	/* Memory of the records, which is used again: the kernel needs long to clear new memory. */
	uint32_t *room;
};

/* Return: @n numbers and one more, all 0. */
static uint32_t *numbers(size_t n)
{
	return huge_pages(calloc(n + 1, sizeof(uint32_t)), (n + 1) * sizeof(uint32_t));
}

/* ------------------------------------------------------------- edges of holders -- */

static bool lasting_first(const struct dom_holders *h, uint32_t i, bool weak)
{
	return h->parent[i] == INDEX_NONE && h->weak[i] == weak;
}

/* Return: the virtual node or the holder that leads to holder @i. */
static uint32_t leader(const struct dom_holders *h, uint32_t i)
{
	return h->parent[i] == INDEX_NONE ? h->n : h->parent[i];
}

/* Appends holder @i to the edges of its leader; @at: where each one's next edge goes. */
static void lead_to(struct top *t, const struct dom_holders *h, uint32_t blocks, uint32_t *at,
		    uint32_t i)
{
	uint32_t e = at[leader(h, i)]++;

	t->to[e] = blocks + i;
	bitmap_set(t->exact, e);
}

static int make_top(struct finder *f)
{
	const struct dom_holders *h = f->h;
	struct top *t = &f->top;
	size_t edges = (size_t)h->first[h->n] + h->n;
	uint32_t *at;

	if (edges >= UINT32_MAX)
		return -E2BIG;
	t->first = numbers(h->n + 1ull);
	t->to = numbers(edges);
	t->exact = bitmap_new(edges);
	at = numbers(h->n);
	if (!t->first || !t->to || !t->exact || !at) {
		free(at);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->n; i++) {
		t->first[i + 1] += h->first[i + 1] - h->first[i];
		t->first[leader(h, i) + 1]++;
	}
	for (uint32_t i = 0; i <= h->n; i++) {
		t->first[i + 1] += t->first[i];
		at[i] = t->first[i];
	}
	/* The search visits what other holders reach before it visits weak ones. */
	for (int weak = 0; weak < 2; weak++) {
		for (uint32_t i = 0; i < h->n; i++) {
			if (lasting_first(h, i, weak))
				lead_to(t, h, f->g->n, at, i);
		}
	}
	for (uint32_t i = 0; i < h->n; i++) {
		if (h->parent[i] != INDEX_NONE)
			lead_to(t, h, f->g->n, at, i);
		for (uint32_t e = h->first[i]; e < h->first[i + 1]; e++) {
			if (h->exact && bitmap_has(h->exact, e))
				bitmap_set(t->exact, at[i]);
			t->to[at[i]++] = h->to[e];
		}
	}
	free(at);
	return 0;
}

/* ------------------------------------------------------------- records -- */

/* The edges of a node. */
struct edges {
	const uint32_t *to;
	const uint64_t *exact;
	size_t nexact; /* words of .exact */
	uint32_t at, end;
};

static inline struct edges edges_of(const struct finder *f, uint32_t node)
{
	const struct graph *g = f->g;
	const struct top *t = &f->top;

	if (node < g->n)
		return (struct edges){g->to.at, g->exact.at, g->exact.n, g->first[node],
				      g->first[node + 1]};
	node -= g->n;
	return (struct edges){t->to, t->exact, SIZE_MAX, t->first[node], t->first[node + 1]};
}

/* Return: the index of the node's record. */
static inline uint32_t record_of(const struct finder *f, uint32_t node)
{
	const uint32_t blocks = f->g->n;

	return HEAD * node + (node <= blocks ? f->g->first[node]
					     : f->g->first[blocks] + f->top.first[node - blocks]);
}

static void write_record(struct finder *f, uint32_t node)
{
	uint32_t *r = &f->record[record_of(f, node)];
	struct edges e = edges_of(f, node);

	*r++ = UNREACHED | (e.end - e.at);
	*r++ = 0;
	while (e.at < e.end)
		*r++ = record_of(f, e.to[e.at++]);
}

static void write_records(void *arg, unsigned int part)
{
	struct finder *f = arg;
	const struct graph *g = f->g;
	const uint32_t begin = part ? g->n / 2 : 0, end = part + 1 < f->parts ? g->n / 2 : g->n,
		       all = g->first[end];
	uint32_t ahead = begin < g->n ? g->first[begin] : 0;

	for (uint32_t node = begin; node < end; node++) {
		for (; ahead < g->first[node + 1] + AHEAD && ahead < all; ahead++) {
			if (g->to.at[ahead] < g->n)
				__builtin_prefetch(&g->first[g->to.at[ahead]]);
		}
		write_record(f, node);
	}
	for (uint32_t node = g->n; node < f->nodes && part + 1 == f->parts; node++)
		write_record(f, node);
}

static int make_records(struct finder *f)
{
	const uint64_t size =
	    HEAD * (uint64_t)f->nodes + f->g->first[f->g->n] + f->top.first[f->h->n + 1ull];

	if (size >= UNREACHED)
		return -E2BIG;
	f->size = (uint32_t)size;
	f->record = huge_pages(malloc(size * sizeof(uint32_t)), size * sizeof(uint32_t));
	if (!f->record)
		return -ENOMEM;
	parallel_run(f->parts, write_records, f);
	vec_free(&f->g->to);
	return 0;
}

/* ------------------------------------------------------------- depth-first search -- */

/* Does the tree ignore an edge between nodes with these numbers? */
static inline bool left_out(const struct finder *f, uint32_t from, uint32_t to)
{
	return from >= f->weak && to < f->weak;
}

/* Is it the record of the first weak holder that is reached? */
static bool begins_weak(const struct finder *f, uint32_t record)
{
	uint32_t low = 0, high = f->h->n;

	if (f->weak != INDEX_NONE || record < record_of(f, f->g->n))
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (record_of(f, f->g->n + middle) < record)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->h->n && lasting_first(f->h, low, true);
}

/* Numbers the node, counts it as a predecessor of others, and queues those that are not reached
 * yet.  Return: 0, 1: with its mark, or -ENOMEM. */
static int reach(struct finder *f, uint32_t record, uint32_t parent)
{
	uint32_t *const r = &f->record[record], edges = r[0] & ~UNREACHED;
	const uint32_t me = f->n;

	if (begins_weak(f, record))
		f->weak = me;
	r[0] = me;
	f->vertex[me] = record;
	f->parent[me] = parent;
	f->n++;
	/* Fetches all together, before the first one is waited for. */
	for (uint32_t i = edges; i > 0 && i + AHEAD > edges; i--)
		__builtin_prefetch(&f->record[r[HEAD + i - 1]]);
	if (edges && vec_push(&f->pending, UNREACHED | me))
		return -ENOMEM;
	/* What is queued last is reached first. */
	for (uint32_t i = edges; i-- > 0;) {
		const uint32_t next = r[HEAD + i];
		uint32_t *const to = &f->record[next];

		if (i >= AHEAD)
			__builtin_prefetch(&f->record[r[HEAD + i - AHEAD]]);
		if (left_out(f, me, to[0]))
			continue;
		to[1]++;
		if (to[0] & UNREACHED && vec_push(&f->pending, next))
			return -ENOMEM;
	}
	return edges > 0;
}

/* What is pending are records, and below those that a node has queued, UNREACHED and its number. */
static int search(struct finder *f)
{
	uint32_t above = 0;
	int ret;

	f->vertex = numbers(f->nodes);
	f->parent = numbers(f->nodes);
	if (!f->vertex || !f->parent)
		return -ENOMEM;
	f->weak = INDEX_NONE;
	ret = vec_push(&f->pending, record_of(f, f->nodes - 1));
	while (f->pending.n && ret >= 0) {
		const uint32_t next = f->pending.at[--f->pending.n];

		if (next & UNREACHED) {
			above = f->parent[next & ~UNREACHED];
			continue;
		}
		/* Behind a long branch, many in a row are reached already. */
		if (f->pending.n >= AHEAD)
			__builtin_prefetch(
			    &f->record[f->pending.at[f->pending.n - AHEAD] & ~UNREACHED]);
		if (!(f->record[next] & UNREACHED))
			continue;
		ret = reach(f, next, above);
		if (ret > 0)
			above = f->n - 1;
	}
	vec_free(&f->pending);
	return ret < 0 ? ret : 0;
}

/* ------------------------------------------------------------- predecessors -- */

/* Edges on their way to .from, so that their cache misses overlap. */
#define IN_FLIGHT (2 * AHEAD)
struct scatter {
	struct finder *f;
	uint32_t n;
	struct {
		uint32_t to, from; /* a record; a number, with DOM_EXACT */
	} edge[IN_FLIGHT];
};

static inline void store_edge(struct scatter *s, uint32_t i)
{
	const uint32_t from = s->edge[i % IN_FLIGHT].from;
	uint32_t *const to = &s->f->record[s->edge[i % IN_FLIGHT].to];

	if (!left_out(s->f, from & ~DOM_EXACT, to[0]))
		s->f->from[to[1]++] = from;
}

static inline void add_predecessor(struct scatter *s, uint32_t to, uint32_t from)
{
	const uint32_t i = s->n++;

	if (i >= IN_FLIGHT)
		store_edge(s, i);
	s->edge[i % IN_FLIGHT].to = to;
	s->edge[i % IN_FLIGHT].from = from;
	__builtin_prefetch(&s->f->record[to], 1);
	if (i >= AHEAD)
		__builtin_prefetch(
		    &s->f->from[s->f->record[s->edge[(i - AHEAD) % IN_FLIGHT].to + 1]], 1);
}

static bool edge_exact(const struct edges *e)
{
	return e->at / 64 < e->nexact && bitmap_has(e->exact, e->at);
}

/* Each part has the edges to its half of the records, so that both get the same lists as one. */
static void fill_part(void *arg, unsigned int part)
{
	struct finder *f = arg;
	const uint32_t begin = part ? f->size / 2 : 0,
		       end = part + 1 < f->parts ? f->size / 2 : f->size;
	struct scatter s = {.f = f};

	for (uint32_t node = 0; node < f->nodes; node++) {
		const uint32_t record = record_of(f, node), from = f->record[record],
			       *to = &f->record[record + HEAD];

		if (from & UNREACHED)
			continue;
		if (record >= begin && record < end)
			f->vertex[from] = node;
		for (struct edges e = edges_of(f, node); e.at < e.end; e.at++, to++) {
			if (*to >= begin && *to < end)
				add_predecessor(&s, *to, from | (edge_exact(&e) ? DOM_EXACT : 0));
		}
	}
	for (uint32_t i = s.n < IN_FLIGHT ? 0 : s.n - IN_FLIGHT; i != s.n; i++)
		store_edge(&s, i);
}

/* Reverses all edges between reached nodes, then frees them. */
static int reverse(struct finder *f)
{
	uint64_t edges = 0;

	f->from_first = numbers(f->n);
	if (!f->from_first)
		return -ENOMEM;
	for (uint32_t v = 0; v < f->n; v++) {
		uint32_t *const r = &f->record[f->vertex[v]], count = r[1];

		if (v + AHEAD < f->n)
			__builtin_prefetch(&f->record[f->vertex[v + AHEAD]], 1);
		f->from_first[v] = r[1] = (uint32_t)edges;
		edges += count;
	}
	f->from_first[f->n] = (uint32_t)edges;
	f->from = numbers(edges);
	if (!f->from)
		return -ENOMEM;
	parallel_run(f->parts, fill_part, f);
	graph_free_edges(f->g);
	f->room = f->record;
	f->record = NULL;
	return 0;
}

/* ------------------------------------------------------------- dominators -- */

static int resize_room(struct finder *f, size_t bytes)
{
	uint32_t *room = realloc(f->room, bytes);

	if (!room)
		return -ENOMEM;
	f->room = huge_pages(room, bytes);
	return 0;
}

static int immediate_dominators(struct finder *f)
{
	const struct reversed g = {f->n, f->from_first, f->from};
	int ret = resize_room(f, (size_t)f->n * SEMI_NCA_BYTES);

	return ret ? ret : semi_nca(&g, f->parent, f->room);
}

/* ------------------------------------------------------------- the tree -- */

/* Counts the nodes below each one, itself included, by number. */
static void count_below(const struct finder *f, uint32_t *count)
{
	for (uint32_t v = 0; v < f->n; v++)
		count[v] = 1;
	for (uint32_t v = f->n; v-- > 1;)
		count[f->parent[v]] += count[v];
}

/* Gives each node a place. */
static int make_places(struct finder *f, struct dominators *d)
{
	/* When a node has its place, where the next node below it goes takes the place of its
	 * count.  The same with its place and .vertex. */
	uint32_t *const count = f->room, *const next = count;

	d->count = numbers(f->n);
	d->node = numbers(f->n);
	if (!d->count || !d->node)
		return -ENOMEM;
	count_below(f, count);
	for (uint32_t v = 0; v < f->n; v++) {
		const uint32_t place = v ? next[f->parent[v]] : 0;

		if (v)
			next[f->parent[v]] += count[v];
		d->count[place] = count[v];
		d->node[place] = f->vertex[v];
		next[v] = place + 1;
		f->vertex[v] = place;
	}
	d->reached = f->vertex;
	f->vertex = NULL;
	return 0;
}

static bool within(const struct dominators *d, uint32_t place, uint32_t tree)
{
	return place - tree < d->count[tree];
}

/* Has a node that @v does not dominate the address of @v's start? */
static bool hangs_exactly(const struct finder *f, const struct dominators *d, uint32_t v)
{
	for (uint32_t e = f->from_first[v]; e < f->from_first[v + 1ull]; e++) {
		if (f->from[e] & DOM_EXACT &&
		    !within(d, d->reached[f->from[e] & ~DOM_EXACT], d->reached[v]))
			return true;
	}
	return false;
}

/* Fetches what sum_up() needs of the nodes that come after @v. */
static inline void fetch_sums(const struct finder *f, const struct dominators *d, uint32_t v)
{
	uint32_t at;

	if (v < 2 * AHEAD)
		return;
	at = d->reached[v - 2 * AHEAD];
	__builtin_prefetch(&d->node[at]);
	__builtin_prefetch(&d->count[at]);
	__builtin_prefetch(&d->bytes[at]);
	__builtin_prefetch(&d->exact[at]);
	__builtin_prefetch(&d->reached[f->from[f->from_first[v - 2 * AHEAD]] & ~DOM_EXACT]);
	at = d->node[d->reached[v - AHEAD]];
	if (at < f->g->n)
		__builtin_prefetch(&f->g->block[at]);
}

static int sum_up(struct finder *f, struct dominators *d)
{
	const uint32_t *place = d->reached;
	const size_t bytes = (f->n + 1ull) * sizeof(*d->bytes);

	d->exact = huge_pages(calloc(1, bytes), bytes);
	if (!d->exact || resize_room(f, bytes))
		return -ENOMEM;
	d->bytes = memset(f->room, 0, bytes);
	f->room = NULL;
	/* Every node has a higher number than its dominators. */
	for (uint32_t v = f->n; v-- > 0;) {
		uint32_t at = place[v], up = v ? place[f->parent[v]] : 0, node = d->node[at];
		uint64_t own = node < f->g->n ? f->g->block[node].size : 0;

		fetch_sums(f, d, v);
		d->bytes[at] += own;
		d->exact[at] += own;
		if (!v)
			continue;
		d->bytes[up] += d->bytes[at];
		if (hangs_exactly(f, d, v))
			d->exact[up] += d->exact[at];
	}
	return 0;
}

static int make_tree(struct finder *f, struct dominators *d)
{
	int ret = make_places(f, d);

	if (!ret)
		ret = sum_up(f, d);
	d->n = f->n;
	d->from = f->from;
	d->from_first = f->from_first;
	f->from = f->from_first = NULL;
	if (ret)
		return ret;
	d->place = realloc(f->parent, (f->nodes + 1ull) * sizeof(*d->place));
	if (!d->place)
		return -ENOMEM;
	f->parent = NULL;
	memset(d->place, 0xff, (f->nodes + 1ull) * sizeof(*d->place));
	for (uint32_t i = 0; i < d->n; i++)
		d->place[d->node[i]] = i;
	return 0;
}

int dominators_find(struct dominators *d, struct graph *g, const struct dom_holders *h)
{
	struct finder f = {.g = g, .h = h};
	int ret = g->n + (uint64_t)h->n + 1 >= DOM_EXACT ? -E2BIG : 0;

	memset(d, 0, sizeof(*d));
	d->blocks = g->n;
	d->holders = h->n;
	f.nodes = g->n + h->n + 1;
	f.parts = g->n < MIN_PARALLEL ? 1 : parallel_parts();
	if (!ret)
		ret = make_top(&f);
	if (!ret)
		ret = make_records(&f);
	if (!ret)
		ret = search(&f);
	if (!ret)
		ret = reverse(&f);
	if (!ret)
		ret = immediate_dominators(&f);
	if (!ret)
		ret = make_tree(&f, d);
	free(f.top.first);
	free(f.top.to);
	free(f.top.exact);
	free(f.record);
	free(f.vertex);
	free(f.parent);
	free(f.from);
	free(f.from_first);
	free(f.room);
	vec_free(&f.pending);
	return ret;
}

void dominators_settle(struct dominators *d)
{
	free(d->from);
	free(d->from_first);
	free(d->reached);
	d->from = d->from_first = d->reached = NULL;
}

void dominators_free(struct dominators *d)
{
	dominators_settle(d);
	free(d->node);
	free(d->place);
	free(d->count);
	free(d->bytes);
	free(d->exact);
	memset(d, 0, sizeof(*d));
}

uint32_t dominators_parent(const struct dominators *d, uint32_t place)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = at + 1;

		if (at == place || child == place)
			return at;
		while (!within(d, place, child))
			child += d->count[child];
		if (child == place)
			return at;
		at = child;
	}
}

/* Return: the number that the search gave to the node at @place. */
static uint32_t number_of(const struct dominators *d, uint32_t place)
{
	uint32_t v = 0;

	while (v < d->n && d->reached[v] != place)
		v++;
	return v;
}

int64_t dominators_holders(const struct dominators *d, uint32_t place, uint32_t *holders,
			   uint32_t max)
{
	uint64_t *seen = bitmap_new(d->n);
	VEC(uint32_t) queue = {0};
	int64_t found = 0;
	int ret = seen ? vec_push(&queue, number_of(d, place)) : -ENOMEM;

	for (size_t i = 0; i < queue.n && !ret; i++) {
		uint32_t v = queue.at[i];

		for (uint32_t e = d->from_first[v]; e < d->from_first[v + 1ull] && !ret; e++) {
			uint32_t from = d->from[e] & ~DOM_EXACT, node = d->node[d->reached[from]];

			if (bitmap_has(seen, from))
				continue;
			bitmap_set(seen, from);
			if (node < d->blocks)
				ret = vec_push(&queue, from);
			else if (found++ < max)
				holders[found - 1] = node - d->blocks;
		}
	}
	vec_free(&queue);
	free(seen);
	return ret ? ret : found;
}
