/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/allocation_pass.h"

#include <errno.h>
#include "model/filter/selection.h"
#include "model/model.h"

struct pass {
	const struct model *m;
	enum allocation_key key;
	const struct allocation_sink *sink;
	struct history *h;
};

int allocation_compare(const struct allocation *x, const struct allocation *y, bool descending)
{
	if (x->key != y->key)
		return (x->key < y->key) != descending ? -1 : 1;
	return x->block.ordinal < y->block.ordinal ? -1 : x->block.ordinal > y->block.ordinal;
}

static uint64_t key_of(const struct pass *p, const struct allocation *a)
{
	switch (p->key) {
	case BY_ADDRESS:
		return a->block.addr;
	case BY_SIZE:
		return a->block.size;
	case BY_LIFETIME:
		return a->end_ns - a->block.time_ns;
	default:
		return a->block.time_ns;
	}
}

static uint32_t stack_of_end(const struct mp_event *by)
{
	bool has = by->kind == EV_REALLOC_END || (by->kind == EV_FREE && by->flags & EV_F_STACK);

	return has ? by->stack : 0;
}

static int tell(struct pass *p, const struct model_block *b, const struct mp_event *by)
{
	struct history_chain chain = history_chain(p->h, b);
	struct allocation a = {.block = *b,
			       .ended = by,
			       .end_ns = by ? by->time_ns : p->m->facts.end_ns,
			       .end_tid = by ? by->tid : 0,
			       .end_stack = by ? stack_of_end(by) : 0,
			       .chain = chain.ordinal,
			       .position = chain.length - 1};

	if (p->m->source.selection && !selection_has(p->m->source.selection, b))
		return 0;
	if (a.end_ns < b->time_ns)
		a.end_ns = b->time_ns;
	a.key = key_of(p, &a);
	return p->sink->one(p->sink->ctx, &a);
}

static int end_chain(struct pass *p, const struct model_block *last, const struct mp_event *by)
{
	struct history_chain chain = history_chain(p->h, last);
	struct chain_end end = {.chain = chain.ordinal,
				.length = chain.length,
				.first_ns = chain.time_ns,
				.ended = by,
				.end_ns = by ? by->time_ns : p->m->facts.end_ns,
				.end_tid = by ? by->tid : 0};

	return chain.length > 1 && p->sink->chain ? p->sink->chain(p->sink->ctx, &end) : 0;
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	int ret = tell(ctx, b, by);

	return ret || history_continues(by, how) ? ret : end_chain(ctx, b, by);
}

static int on_live(void *ctx, const struct model_block *b)
{
	int ret = tell(ctx, b, NULL);

	return ret ? ret : end_chain(ctx, b, NULL);
}

int allocations_pass(const struct model *m, enum allocation_key key,
		     const struct allocation_sink *sink, struct mp_err *err)
{
	struct pass p = {.m = m, .key = key, .sink = sink};
	struct history_sink of = {.faulted = on_live, .ended = on_ended, .ctx = &p};
	struct mpf_reader *r = NULL;
	struct mp_info info;
	int ret;

	p.h = history_new(&of);
	ret = p.h ? mpf_open(m->source.path, &r, &info, err)
		  : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret) {
		history_tell(p.h, &m->source.progress);
		ret = history_read(p.h, r, NULL, err);
	}
	if (!ret && history_live(p.h, on_live, &p))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	mpf_reader_free(r);
	history_free(p.h);
	return ret;
}
