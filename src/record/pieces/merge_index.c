/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/merge_index.h"

#include <errno.h>
#include "formats/session.h"

struct live_sum {
	uint64_t bytes, blocks;
};

struct merge_index {
	struct merge_output *o;
	struct mp_totals totals;
	VEC(struct live_sum) live; /* [stack id in the new file] */
	VEC(uint32_t) stack;	   /* [id in the current part]: id in the new file */
	bool last;		   /* the current part is the last of its process */
	struct mp_err *err;
};

static int out_of_memory(struct merge_index *x)
{
	return mp_fail(x->err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

static int corrupt(struct merge_index *x)
{
	return mp_fail(x->err, MP_EXIT_RECORDING, -EINVAL, "the index of a recording is corrupt");
}

bool merge_index_possible(const struct merge_parts *parts)
{
	vec_for_each (&parts->part, part) {
		struct mpf_reader *reader;
		struct mp_info info;
		struct mp_err err;
		bool has;

		if (part->truncated || mpf_open(part->path, &reader, &info, &err))
			return false;
		has = mpf_seek_index(reader);
		mpf_reader_free(reader);
		if (!has)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------ reading -- */

static int take_stack(struct merge_index *x, const struct mpf_item *it)
{
	bool fresh;
	uint32_t id =
	    stacks_intern(&x->o->stacks, it->stack.pc, it->stack.n, it->stack.flags, &fresh);

	if (!id)
		return out_of_memory(x);
	if (fresh) /* the part's events must have it, too */
		return corrupt(x);
	while (x->stack.n <= it->stack.id) {
		if (it->stack.id > 1u << 28 || vec_push(&x->stack, 0))
			return out_of_memory(x);
	}
	x->stack.at[it->stack.id] = id;
	return 0;
}

static int take_live(struct merge_index *x, const struct mpf_item *it)
{
	uint32_t id = it->live.id;

	if (id >= x->stack.n || (id && !x->stack.at[id]))
		return corrupt(x);
	id = x->stack.at[id];
	if (vec_reach(&x->live, id))
		return out_of_memory(x);
	x->live.at[id].bytes += it->live.bytes;
	x->live.at[id].blocks += it->live.blocks;
	return 0;
}

static void take_totals(struct merge_index *x, const struct mp_totals *t)
{
	x->totals.events += t->events;
	x->totals.allocations += t->allocations;
	x->totals.allocated_bytes += t->allocated_bytes;
	x->totals.frees += t->frees;
	x->totals.live_bytes += x->last ? t->live_bytes : 0;
	x->totals.live_blocks += x->last ? t->live_blocks : 0;
}

static int note_item(struct merge_index *x, const struct mpf_item *it)
{
	switch (it->kind) {
	case MPF_TOTALS:
		take_totals(x, &it->totals);
		return 0;
	case MPF_STACK:
		return x->last ? take_stack(x, it) : 0;
	case MPF_LIVE:
		return x->last ? take_live(x, it) : 0;
	default:
		return 0;
	}
}

static int take_symbols(struct merge_index *x, const struct mpf_item *it)
{
	return it->kind == MPF_SYMBOLS ? merge_output_symbols(x->o, it, x->err) : 0;
}

/* Reads the index of a part and the items after it. */
static int read_part(struct merge_index *x, const char *path,
		     int (*item)(struct merge_index *x, const struct mpf_item *it))
{
	struct mpf_reader *reader;
	struct mp_info info;
	struct mpf_item it;
	int ret = mpf_open(path, &reader, &info, x->err);

	if (ret)
		return ret;
	if (!mpf_seek_index(reader))
		ret = corrupt(x);
	while (!ret && (ret = mpf_next(reader, &it, x->err)) > 0)
		ret = item(x, &it);
	mpf_reader_free(reader);
	return ret;
}

static int read_parts(struct merge_index *x,
		      int (*item)(struct merge_index *x, const struct mpf_item *it))
{
	const struct merge_parts *parts = x->o->parts;
	int ret = 0;

	vec_for_each (&parts->process, p) {
		for (uint32_t i = 0; i < p->n && !ret; i++) {
			x->last = i + 1 == p->n;
			x->stack.n = 0;
			ret = vec_push(&x->stack, 0) ? out_of_memory(x) : 0;
			if (!ret)
				ret = read_part(x, parts->part.at[p->first + i].path, item);
		}
	}
	return ret;
}

/* ------------------------------------------------------------------ writing -- */

static int write_index(struct merge_index *x)
{
	struct merge_output *o = x->o;
	uint64_t pc[SS_MAX_FRAMES];
	int ret;

	mpf_begin_index(o->w);
	ret = merge_output_processes(o, x->err);
	vec_for_each (&o->modules, module)
		mpf_put_module(o->w, &module->m);
	mpf_put_totals(o->w, &x->totals);
	for (uint32_t id = 0; id < x->live.n; id++) {
		const struct stack *s = &o->stacks.at[id];

		if (!x->live.at[id].blocks)
			continue;
		stacks_pcs(&o->stacks, id, pc);
		if (id)
			mpf_put_stack(o->w, id, s->flags, pc, s->n);
		mpf_put_live(o->w, id, x->live.at[id].bytes, x->live.at[id].blocks);
	}
	return ret ? ret : merge_output_wrote(mpf_end_index(o->w), x->err);
}

int merge_index_put(struct merge_output *o, uint64_t carried, struct mp_err *err)
{
	struct merge_index x = {.o = o, .err = err};
	int ret = read_parts(&x, note_item);

	if (x.totals.events >= carried)
		x.totals.events -= carried;
	if (!ret)
		ret = write_index(&x);
	if (!ret)
		ret = read_parts(&x, take_symbols);
	vec_free(&x.live);
	vec_free(&x.stack);
	return ret;
}
