/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tree is not built in memory: the stacks are sorted, from their outermost frame on, so that all
 * stacks below a node are next to each other.  yajl writes at most 128 levels, of which each frame takes
 * two, so only the frames are written by it.
 */
#include "server/answers/tree.h"

#include <errno.h>
#include <stdlib.h>
#include "formats/session.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"

struct tree {
	struct answer *a;
	yajl_gen g;
	uint32_t *ids; /* stacks with allocations, sorted */
};

/* Return: the address of the stack's frame number @depth, from the outermost one. */
static uint64_t pc_at(const struct model *m, uint32_t id, uint32_t depth)
{
	const struct model_stack *s = &m->stacks.at[id];

	return m->stacks.pc.at[s->first + s->n - 1 - depth];
}

static uint64_t address_at(const struct model *m, uint32_t id, uint32_t depth)
{
	return ss_pc_instruction(pc_at(m, id, depth));
}

static int outermost_first(const void *a, const void *b, void *ctx)
{
	const struct model *m = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t nx = m->stacks.at[x].n, ny = m->stacks.at[y].n;

	for (uint32_t i = 0; i < nx && i < ny; i++) {
		uint64_t p = address_at(m, x, i), q = address_at(m, y, i);

		if (p != q)
			return p < q ? -1 : 1;
	}
	return nx < ny ? -1 : nx > ny;
}

/* Writes the sums of the stacks from @from up to @to, and opens the object that they are in. */
static void open_node(const struct tree *t, size_t from, size_t to)
{
	const struct model *m = t->a->m;
	struct group sum = {.first_ns = UINT64_MAX};
	uint64_t start = m->info.start_unix_ns;

	for (size_t i = from; i < to; i++) {
		const struct group *g = &m->sums.group[t->ids[i]];

		sum.allocated_bytes += g->allocated_bytes;
		sum.allocations += g->allocations;
		if (g->first_ns < sum.first_ns)
			sum.first_ns = g->first_ns;
		if (g->last_ns > sum.last_ns)
			sum.last_ns = g->last_ns;
	}
	fprintf(t->a->out, "{\"size\":%llu,\"count\":%llu,\"first\":%llu,\"last\":%llu",
		(unsigned long long)sum.allocated_bytes, (unsigned long long)sum.allocations,
		from < to ? (unsigned long long)(start + sum.first_ns) / 1000000000u : 0,
		from < to ? (unsigned long long)(start + sum.last_ns) / 1000000000u : 0);
}

/* Writes the frames of one address, each of which is in the one before.  Return: their number. */
static uint32_t open_frames(const struct tree *t, size_t from, size_t to, uint32_t depth)
{
	struct frame f[MAX_INLINED];
	uint64_t pc = pc_at(t->a->m, t->ids[from], depth);
	uint32_t n = model_frames(t->a->m, pc, f, MAX_INLINED);

	for (uint32_t i = n; i-- > 0;) {
		open_node(t, from, to);
		fputs(",\"value\":", t->a->out);
		yajl_gen_reset(t->g, "");
		frames_one(t->a, t->g, &f[i]);
		fputs(",\"children\":[", t->a->out);
	}
	return n;
}

/* Writes what is below a node whose stacks, from @from up to @to, agree in @depth frames. */
static void write_children(const struct tree *t, size_t from, size_t to, uint32_t depth)
{
	const struct model *m = t->a->m;
	bool first = true;

	while (from < to && m->stacks.at[t->ids[from]].n == depth)
		from++; /* they end here */
	while (from < to && !ferror(t->a->out)) {
		uint64_t address = address_at(m, t->ids[from], depth);
		size_t next = from + 1;
		uint32_t opened;

		while (next < to && address_at(m, t->ids[next], depth) == address)
			next++;
		if (!first)
			putc(',', t->a->out);
		first = false;
		opened = open_frames(t, from, next, depth);
		write_children(t, from, next, depth + 1);
		while (opened-- > 0)
			fputs("]}", t->a->out);
		from = next;
	}
}

static void write_tree(const struct tree *t, size_t n)
{
	open_node(t, 0, n);
	if (n && model_is_estimated(t->a->m))
		fputs(",\"estimated\":true", t->a->out);
	fputs(",\"children\":[", t->a->out);
	write_children(t, 0, n, 0);
	fputs("]}", t->a->out);
}

int answer_tree(struct answer *a, struct mp_err *err)
{
	struct tree t = {.a = a};
	size_t n = 0;
	int ret = frames_begin(a, err);

	if (ret)
		return ret;
	t.ids = malloc(a->m->stacks.n * sizeof(*t.ids));
	if (!t.ids)
		return answer_no_memory(err);
	for (uint32_t id = 0; id < a->m->stacks.n; id++) {
		if (a->m->sums.group[id].allocations)
			t.ids[n++] = id;
	}
	qsort_r(t.ids, n, sizeof(*t.ids), outermost_first, a->m);
	ret = answer_begin(a, &t.g, err);
	if (!ret) {
		write_tree(&t, n);
		ret = answer_end(a, t.g, 0, err);
	}
	free(t.ids);
	return ret;
}
