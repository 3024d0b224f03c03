/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The dominator tree of random graphs, compared with its definition: a node dominates those that
 * cannot be reached without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "leaks/retained/dominators.h"

#define BLOCKS	24
#define HOLDERS 6
#define NODES	(BLOCKS + HOLDERS + 1)
#define VIRTUAL (NODES - 1)
#define EDGES	(BLOCKS * BLOCKS)

/* A graph as a matrix. */
struct world {
	uint32_t blocks, holders;
	bool edge[NODES][NODES], exact[NODES][NODES];
	uint32_t parent[HOLDERS];
	bool weak[HOLDERS];
	struct heap_block block[BLOCKS];
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static uint32_t below(uint64_t *x, uint32_t n)
{
	return (uint32_t)(next_random(x) >> 20) % n;
}

static void make_world(struct world *w, uint64_t *x)
{
	uint32_t edges;

	memset(w, 0, sizeof(*w));
	w->blocks = 1 + below(x, BLOCKS);
	w->holders = 1 + below(x, HOLDERS);
	edges = below(x, 3 * w->blocks);
	for (uint32_t i = 0; i < w->blocks; i++)
		w->block[i].size = 1 + below(x, 1000);
	for (uint32_t i = 0; i < edges; i++) {
		uint32_t a = below(x, w->blocks), b = below(x, w->blocks);

		w->edge[a][b] = a != b;
		w->exact[a][b] = a != b && below(x, 2);
	}
	for (uint32_t i = 0; i < w->holders; i++) {
		w->parent[i] = i && !below(x, 3) ? below(x, i) : INDEX_NONE;
		w->weak[i] = w->parent[i] == INDEX_NONE ? below(x, 2) : w->weak[w->parent[i]];
		for (uint32_t k = below(x, 3); k; k--) {
			uint32_t b = below(x, w->blocks);

			w->edge[BLOCKS + i][b] = true;
			w->exact[BLOCKS + i][b] = below(x, 2);
		}
		w->edge[w->parent[i] == INDEX_NONE ? VIRTUAL : BLOCKS + w->parent[i]][BLOCKS + i] =
		    true;
	}
	for (uint32_t a = 0; a < NODES; a++) {
		for (uint32_t b = BLOCKS; b < NODES; b++)
			w->exact[a][b] = w->edge[a][b];
	}
}

/* What can be reached from the virtual node without @without; not through weak holders if
 * !@weak. */
static void reach(const struct world *w, uint32_t without, bool weak, bool seen[NODES])
{
	bool more = true;

	memset(seen, 0, NODES);
	seen[VIRTUAL] = without != VIRTUAL;
	while (more) {
		more = false;
		for (uint32_t a = 0; a < NODES; a++) {
			for (uint32_t b = 0; b < NODES && seen[a]; b++) {
				if (!w->edge[a][b] || seen[b] || b == without ||
				    (!weak && b >= BLOCKS && b < VIRTUAL && w->weak[b - BLOCKS]))
					continue;
				seen[b] = true;
				more = true;
			}
		}
	}
}

/* Takes out edges from what only weak holders reach to what others reach. */
static void prefer_lasting(struct world *w)
{
	bool lasting[NODES], all[NODES];

	reach(w, NODES, false, lasting);
	reach(w, NODES, true, all);
	for (uint32_t a = 0; a < NODES; a++) {
		for (uint32_t b = 0; b < NODES; b++)
			w->edge[a][b] &= !(all[a] && !lasting[a] && lasting[b]);
	}
}

/* The same graph for dominators_find(), whose holders follow the blocks without a gap. */
static void find(const struct world *w, struct dominators *d)
{
	static uint32_t first[HOLDERS + 1], to[HOLDERS * BLOCKS];
	static uint64_t exact[HOLDERS * BLOCKS / 64 + 1];
	struct dom_holders h = {w->holders, w->parent, w->weak, first, to, exact};
	struct graph g = {.block = w->block, .n = w->blocks, .detailed = true};
	uint32_t n = 0;

	memset(exact, 0, sizeof(exact));
	for (uint32_t i = 0; i < w->holders; i++) {
		first[i] = n;
		for (uint32_t b = 0; b < w->blocks; b++) {
			if (!w->edge[BLOCKS + i][b])
				continue;
			if (w->exact[BLOCKS + i][b])
				exact[n / 64] |= 1ull << n % 64;
			to[n++] = b;
		}
	}
	first[w->holders] = n;
	g.first = calloc(w->blocks + 1, sizeof(*g.first));
	for (size_t i = 0; i < EDGES / 64; i++)
		assert_int_equal(vec_push(&g.exact, 0), 0);
	for (uint32_t a = 0; a < w->blocks; a++) {
		g.first[a] = (uint32_t)g.to.n;
		for (uint32_t b = 0; b < w->blocks; b++) {
			if (!w->edge[a][b])
				continue;
			if (w->exact[a][b])
				g.exact.at[g.to.n / 64] |= 1ull << g.to.n % 64;
			assert_int_equal(vec_push(&g.to, b), 0);
		}
	}
	g.first[w->blocks] = (uint32_t)g.to.n;
	assert_int_equal(dominators_find(d, &g, &h), 0);
}

static uint32_t node_of(const struct world *w, const struct dominators *d, uint32_t i)
{
	return i < BLOCKS ? i : i < VIRTUAL ? w->blocks + i - BLOCKS : dominators_root(d);
}

static bool exists(const struct world *w, uint32_t i)
{
	return i < BLOCKS ? i < w->blocks : i == VIRTUAL || i - BLOCKS < w->holders;
}

/* Exact bytes by the definition: @b counts if, at every node between @a and it, a node that this
 * one does not dominate has its address. */
static bool hangs(const struct world *w, const bool dom[NODES][NODES], const bool seen[NODES],
		  uint32_t a, uint32_t b)
{
	for (uint32_t x = 0; x < NODES; x++) {
		bool found = false;

		if (x == a || !dom[a][x] || !dom[x][b])
			continue;
		for (uint32_t p = 0; p < NODES; p++)
			found |= seen[p] && w->edge[p][x] && w->exact[p][x] && !dom[x][p];
		if (!found)
			return false;
	}
	return true;
}

static void check(struct world *w)
{
	bool seen[NODES], without[NODES], dom[NODES][NODES];
	struct dominators d;

	find(w, &d);
	prefer_lasting(w);
	reach(w, NODES, true, seen);
	for (uint32_t a = 0; a < NODES; a++) {
		reach(w, a, true, without);
		for (uint32_t b = 0; b < NODES; b++)
			dom[a][b] = seen[a] && seen[b] && (a == b || !without[b]);
	}
	for (uint32_t a = 0; a < NODES; a++) {
		uint64_t bytes = 0, exact = 0;
		uint32_t place;

		if (!exists(w, a))
			continue;
		place = d.place[node_of(w, &d, a)];
		assert_int_equal(place != INDEX_NONE, seen[a]);
		if (!seen[a])
			continue;
		for (uint32_t b = 0; b < NODES; b++) {
			uint32_t at;

			if (!exists(w, b) || !seen[b])
				continue;
			at = d.place[node_of(w, &d, b)];
			assert_int_equal(at - place < d.count[place], dom[a][b]);
			if (b >= w->blocks || !dom[a][b])
				continue;
			bytes += w->block[b].size;
			exact += hangs(w, dom, seen, a, b) ? w->block[b].size : 0;
		}
		assert_int_equal(d.bytes[place], bytes);
		assert_int_equal(d.exact[place], exact);
		if (place)
			assert_true(place - dominators_parent(&d, place) <
				    d.count[dominators_parent(&d, place)]);
	}
	dominators_free(&d);
}

static void test_random(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct world w;

		make_world(&w, &x);
		check(&w);
	}
}

/* Holders that reach a block, as a search from each of them says. */
static void test_holders(void **state)
{
	uint64_t x = 4101842887655102017ull;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct dominators d;
		struct world w;

		make_world(&w, &x);
		find(&w, &d);
		prefer_lasting(&w);
		for (uint32_t b = 0; b < w.blocks; b++) {
			uint32_t holder[HOLDERS], expected = 0;
			int64_t n;

			if (d.place[b] == INDEX_NONE)
				continue;
			n = dominators_holders(&d, d.place[b], holder, HOLDERS);
			for (uint32_t k = 0; k < w.holders; k++) {
				bool seen[NODES], found = false;
				struct world only = w;

				for (uint32_t j = 0; j < NODES; j++)
					only.edge[VIRTUAL][j] = j == BLOCKS + k;
				for (uint32_t j = 0; j < w.holders; j++)
					only.edge[BLOCKS + k][BLOCKS + j] = false;
				reach(&only, NODES, true, seen);
				for (int64_t j = 0; j < n; j++)
					found |= holder[j] == k;
				assert_int_equal(found, seen[b]);
				expected += seen[b];
			}
			assert_int_equal(n, expected);
		}
		dominators_free(&d);
	}
}

/* A list of a million blocks that point back and forth: nothing is recursive or quadratic. */
static void test_long_list(void **state)
{
	const uint32_t n = 1000000, first[] = {0, 1}, to[] = {0}, none[] = {INDEX_NONE};
	const uint64_t exact[] = {1};
	const bool weak[] = {false};
	struct dom_holders h = {1, none, weak, first, to, exact};
	struct heap_block *block = calloc(n, sizeof(*block));
	struct graph g = {.block = block, .n = n, .detailed = true};
	struct dominators d;

	(void)state;
	g.first = calloc(n + 1, sizeof(*g.first));
	for (uint32_t i = 0; i < n; i++) {
		block[i].size = 1;
		g.first[i] = (uint32_t)g.to.n;
		if (i)
			assert_int_equal(vec_push(&g.to, i - 1), 0);
		if (i + 1 < n)
			assert_int_equal(vec_push(&g.to, i + 1), 0);
	}
	g.first[n] = (uint32_t)g.to.n;
	assert_int_equal(dominators_find(&d, &g, &h), 0);
	assert_int_equal(d.bytes[0], n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(d.bytes[d.place[i]], n - i);
	assert_int_equal(d.exact[d.place[0]], 1);
	assert_int_equal(d.exact[0], 1);
	dominators_free(&d);
	free(block);
}

/* How many of @n blocks cannot be reached from block 0 without @without. */
static uint32_t lost(const uint32_t *first, const uint32_t *to, uint32_t n, uint32_t without,
		     bool *seen, uint32_t *queue)
{
	uint32_t end = 0;

	memset(seen, 0, n);
	if (without) {
		seen[0] = true;
		queue[end++] = 0;
	}
	for (uint32_t i = 0; i < end; i++) {
		for (uint32_t e = first[queue[i]]; e < first[queue[i] + 1]; e++) {
			if (seen[to[e]] || to[e] == without)
				continue;
			seen[to[e]] = true;
			queue[end++] = to[e];
		}
	}
	return n - end;
}

/* A list with jumps from its begin to its end, the longest ones first, and ways back: the search
 * for semidominators has to note more steps of them than it can. */
static void test_steps(void **state)
{
	const uint32_t n = 9000, holder_first[] = {0, 1}, to[] = {0}, none[] = {INDEX_NONE};
	const uint64_t exact[] = {1};
	const bool weak[] = {false};
	const struct dom_holders h = {1, none, weak, holder_first, to, exact};
	struct heap_block *block = calloc(n, sizeof(*block));
	uint32_t *first = calloc(n + 1, sizeof(*first)),
		 *edges = calloc(4 * n + 300, sizeof(*edges)), *queue = calloc(n, sizeof(*queue));
	struct graph g = {.block = block, .n = n, .detailed = true};
	bool *seen = calloc(n, sizeof(*seen));
	uint64_t x = 88172645463325252ull;
	struct dominators d;

	(void)state;
	g.first = calloc(n + 1, sizeof(*g.first));
	for (uint32_t i = 0; i < n; i++) {
		block[i].size = 1;
		first[i] = g.first[i] = (uint32_t)g.to.n;
		if (i + 1 < n)
			assert_int_equal(vec_push(&g.to, i + 1), 0);
		if (i && i < n / 2 && i % 2)
			assert_int_equal(vec_push(&g.to, n - i), 0);
		if (i > 10 && !below(&x, 16))
			assert_int_equal(vec_push(&g.to, i - 1 - below(&x, 9)), 0);
		/* To nodes so far below that nothing is noted any more, from the end and from one
		 * node. */
		for (uint32_t k = i == 2000 ? 300 : i > n - 600 && !below(&x, 9); k; k--)
			assert_int_equal(vec_push(&g.to, n / 2 + below(&x, 800)), 0);
	}
	first[n] = g.first[n] = (uint32_t)g.to.n;
	memcpy(edges, g.to.at, g.to.n * sizeof(*edges));
	assert_int_equal(dominators_find(&d, &g, &h), 0);
	for (uint32_t i = 0; i < n; i += 7)
		assert_int_equal(d.bytes[d.place[i]], lost(first, edges, n, i, seen, queue));
	dominators_free(&d);
	free(block);
	free(first);
	free(edges);
	free(queue);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_holders),
	    cmocka_unit_test(test_long_list),
	    cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
