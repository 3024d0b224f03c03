/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/live.h"
#include "lib/vec.h"
#include "model/pool.h"
#include "model/tids.h"

#define AHEAD	   64u
#define AHEAD_POOL 12u
#define AHEAD_SINK 6u
#define TABLE_LOAD 74	 /* percent; more would need less memory, but soon much more time */
#define TELL_EVERY 4096u /* batches between two progress reports */
#define NONE	   UINT32_MAX
#define ADDR_MASK  ((1ull << 48) - 1)

/* The state of a thread. */
struct per_thread {
	uint32_t tid;
	uint64_t last_alloc; /* ordinal + 1 of its latest block, as long as that can be temporary */
	bool in_realloc, known;
	struct model_block block;
};

/* The state of a process. */
struct space {
	struct live *live; /* address -> index in the pool, in live_block.stack */
	VEC(struct per_thread) threads;
	struct tid_table tids;
};

struct history {
	struct history_sink sink;
	struct history_counts counts;
	struct history_filter only;
	struct history_progress progress;
	uint32_t batches;
	struct space *space;
	uint32_t nspaces;
	struct pool pool;
	uint64_t allocations;
	VEC(struct history_chain) chains; /* [0] is not used */
	VEC(uint32_t) unused_chains;
};

static int add_spaces(struct history *h, uint32_t n)
{
	struct space *more = n > h->nspaces ? reallocarray(h->space, n, sizeof(*more)) : h->space;

	if (!more)
		return -ENOMEM;
	h->space = more;
	while (h->nspaces < n) {
		struct space *s = &h->space[h->nspaces];

		*s = (struct space){.live = live_new(TABLE_LOAD)};
		if (!s->live)
			return -ENOMEM;
		h->nspaces++;
	}
	return 0;
}

struct history *history_new(const struct history_sink *sink)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->sink = *sink;
	if (!add_spaces(h, 1) && !vec_push(&h->chains, (struct history_chain){0}))
		return h;
	history_free(h);
	return NULL;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->nspaces; i++) {
		live_free(h->space[i].live);
		vec_free(&h->space[i].threads);
		tids_free(&h->space[i].tids);
	}
	free(h->space);
	pool_free(&h->pool);
	vec_free(&h->chains);
	vec_free(&h->unused_chains);
	free(h);
}

const struct history_counts *history_counts(const struct history *h)
{
	return &h->counts;
}

void history_select(struct history *h, const struct history_filter *f)
{
	h->only = *f;
}

void history_tell(struct history *h, const struct history_progress *p)
{
	h->progress = *p;
}

struct history_chain history_chain(const struct history *h, const struct model_block *b)
{
	if (b->chain)
		return h->chains.at[b->chain];
	return (struct history_chain){b->ordinal, b->time_ns, b->size, 1};
}

static uint16_t process_of(const struct history *h, const struct mp_event *ev)
{
	/* A realloc that ends without a block has only the old address. */
	uint64_t number = (ev->addr ? ev->addr : ev->old_addr) >> MP_PROCESS_SHIFT;

	return number < h->nspaces ? (uint16_t)number : 0;
}

static struct per_thread *thread_state(struct space *s, uint32_t tid)
{
	struct per_thread fresh = {.tid = tid};
	uint32_t i = tids_index(&s->tids, tid);

	if (i == TIDS_NONE || (i == s->threads.n && vec_push(&s->threads, fresh)))
		return NULL;
	return &s->threads.at[i];
}

/* ------------------------------------------------------------------ chains -- */

/* Makes @old part of a chain, which the new block continues. */
static int chain_extend(struct history *h, struct model_block *old)
{
	struct history_chain first = {old->ordinal, old->time_ns, old->size, 1};

	if (old->chain)
		return 0;
	if (h->unused_chains.n) {
		old->chain = h->unused_chains.at[--h->unused_chains.n];
		h->chains.at[old->chain] = first;
		return 0;
	}
	old->chain = (uint32_t)h->chains.n;
	return vec_push(&h->chains, first);
}

/* ------------------------------------------------------------------ telling -- */

static bool is_told(const struct history *h, const struct model_block *b)
{
	return !h->only.has || h->only.has(h->only.ctx, b);
}

static int tell_end(struct history *h, const struct model_block *b, const struct mp_event *ev,
		    enum block_end how)
{
	int ret = h->sink.ended && is_told(h, b) ? h->sink.ended(h->sink.ctx, b, ev, how) : 0;

	if (b->chain && !history_continues(ev, how) && vec_push(&h->unused_chains, b->chain))
		return -ENOMEM;
	return ret;
}

static int add_live(struct history *h, const struct model_block *b, const struct mp_event *ev)
{
	struct live_block lb = {.addr = b->addr, .size = b->size}, old;
	struct space *s = &h->space[b->process];
	struct model_block lost;

	if (pool_add(&h->pool, b, &lb.stack) || live_put(s->live, &lb, &old))
		return -ENOMEM;
	if (!old.addr)
		return 0;
	lost = pool_take(&h->pool, &old, b->process);
	h->counts.mismatches++;
	return tell_end(h, &lost, ev, BLOCK_LOST);
}

static bool remove_live(struct history *h, const struct mp_event *ev, struct model_block *b)
{
	uint16_t process = process_of(h, ev);
	struct live_block lb;

	if (!live_take(h->space[process].live, ev->addr & ADDR_MASK, &lb))
		return false;
	*b = pool_take(&h->pool, &lb, process);
	return true;
}

/* Sizes above the limits of the live table are reduced to them; no allocator returns such blocks.
 */
static struct model_block block_of(const struct history *h, const struct mp_event *ev)
{
	uint64_t size = ev->size > LIVE_MAX_SIZE ? LIVE_MAX_SIZE : ev->size;
	uint64_t slack = ev->usable > size ? ev->usable - size : 0;

	return (struct model_block){.addr = ev->addr & ADDR_MASK,
				    .size = size,
				    .usable = size + (slack > UINT32_MAX ? UINT32_MAX : slack),
				    .time_ns = ev->time_ns,
				    .ordinal = h->allocations,
				    .stack = ev->stack,
				    .tid = ev->tid,
				    .hook = ev->hook,
				    .process = process_of(h, ev),
				    .flags = ev->flags & (uint8_t)~EV_F_NOT_TEMPORARY,
				    .weight = ev->weight};
}

static int allocated(struct history *h, const struct mp_event *ev, struct per_thread *t,
		     uint32_t chain)
{
	struct model_block b = block_of(h, ev);
	int ret;

	b.chain = chain;
	h->chains.at[chain].length++;
	h->allocations++;
	ret = add_live(h, &b, ev);
	t->last_alloc = ev->flags & EV_F_CARRIED ? 0 : b.ordinal + 1;
	if (ret || !h->sink.allocated || !is_told(h, &b))
		return ret;
	return h->sink.allocated(h->sink.ctx, &b);
}

/* When the page is released is not recorded, so it is never live. */
static int faulted(struct history *h, const struct mp_event *ev)
{
	struct model_block page = block_of(h, ev);

	h->allocations++;
	if (!h->sink.faulted || !is_told(h, &page))
		return 0;
	return h->sink.faulted(h->sink.ctx, &page);
}

static int freed(struct history *h, const struct mp_event *ev, struct per_thread *t,
		 const struct model_block *b)
{
	bool temporary = t->last_alloc == b->ordinal + 1 && !(ev->flags & EV_F_NOT_TEMPORARY);

	if (temporary)
		t->last_alloc = 0;
	return tell_end(h, b, ev, temporary ? BLOCK_TEMPORARY : BLOCK_FREED);
}

static int on_free(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	struct model_block b;

	if (remove_live(h, ev, &b))
		return freed(h, ev, t, &b);
	if (ev->flags & EV_F_OWN_FREE)
		h->counts.housekeeping_frees++;
	else
		h->counts.foreign_frees++;
	return 0;
}

static int on_realloc_begin(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	int ret = 0;

	if (t->in_realloc && t->known)
		ret = freed(h, ev, t, &t->block); /* the event of its end was lost */
	t->in_realloc = true;
	t->known = remove_live(h, ev, &t->block);
	h->counts.foreign_reallocs += !t->known;
	return ret;
}

static int on_realloc_end(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	uint32_t chain = 0;
	int ret = 0;

	if (!t->in_realloc)
		return 0;
	t->in_realloc = false;
	if (!ev->addr && !(ev->flags & EV_F_FREED)) {
		h->counts.failed_reallocs++;
		return t->known ? add_live(h, &t->block, ev) : 0;
	}
	if (t->known && ev->addr) {
		ret = chain_extend(h, &t->block);
		chain = t->block.chain;
	}
	if (t->known && !ret)
		ret = freed(h, ev, t, &t->block);
	if (ev->addr && !ret)
		ret = allocated(h, ev, t, chain);
	return ret;
}

static int apply(struct history *h, const struct mp_event *ev)
{
	struct per_thread *t = thread_state(&h->space[process_of(h, ev)], ev->tid);

	if (!t)
		return -ENOMEM;
	switch (ev->kind) {
	case EV_ALLOC:
		return allocated(h, ev, t, 0);
	case EV_FREE:
		return on_free(h, ev, t);
	case EV_REALLOC_BEGIN:
		return on_realloc_begin(h, ev, t);
	case EV_REALLOC_END:
		return on_realloc_end(h, ev, t);
	case EV_FAULT:
		return faulted(h, ev);
	default:
		return 0;
	}
}

/* A batch of events, read ahead so that entries can be prefetched. */
struct lookahead {
	struct mpf_item item[AHEAD];
	uint32_t index[AHEAD]; /* index in the pool for events that end a block; or NONE */
	uint32_t n;
};

static int one(struct history *h, const struct mpf_item *it)
{
	int ret = h->sink.item ? h->sink.item(h->sink.ctx, it) : 0;

	return ret || it->kind != MPF_EVENT ? ret : apply(h, &it->event);
}

/* Looks up the block that an event will end.  Its slot in the live table is prefetched by now, and
 * has the index in the pool. */
static void look_ahead(const struct history *h, struct lookahead *b, uint32_t i)
{
	const struct mp_event *ev = &b->item[i].event;
	struct live_block lb;

	b->index[i] = NONE;
	if ((ev->kind == EV_FREE || ev->kind == EV_REALLOC_BEGIN) &&
	    live_find(h->space[process_of(h, ev)].live, ev->addr & ADDR_MASK, &lb)) {
		b->index[i] = lb.stack;
		pool_prefetch(&h->pool, lb.stack);
	}
}

/* Passes the stack that an event will need to the sink.  The entry in the pool is prefetched by
 * now. */
static void look_nearer(const struct history *h, const struct lookahead *b, uint32_t i)
{
	const struct mp_event *ev = &b->item[i].event;

	if (ev->kind == EV_ALLOC || ev->kind == EV_REALLOC_END)
		h->sink.ahead(h->sink.ctx, ev->stack);
	else if (b->index[i] != NONE)
		h->sink.ahead(h->sink.ctx, pool_stack(&h->pool, b->index[i]));
}

/* Return: 0; 1 if @until is reached; or a negative errno. */
static int apply_batch(struct history *h, struct lookahead *b, const struct history_until *until)
{
	for (uint32_t i = 0; i < AHEAD_POOL && i < b->n; i++)
		look_ahead(h, b, i);
	for (uint32_t i = 0; i < b->n; i++) {
		int ret;

		if (i + AHEAD_POOL < b->n)
			look_ahead(h, b, i + AHEAD_POOL);
		if (h->sink.ahead && i + AHEAD_SINK < b->n)
			look_nearer(h, b, i + AHEAD_SINK);
		if (until->time_ns && b->item[i].event.time_ns > until->time_ns)
			return 1;
		h->counts.events++;
		ret = one(h, &b->item[i]);
		if (ret)
			return ret;
		if (until->events && h->counts.events == until->events)
			return 1;
	}
	b->n = 0;
	return 0;
}

static int failed(int ret, struct mp_err *err)
{
	if (ret >= 0)
		return 0;
	return mp_fail(err, MP_EXIT_RECORDING, ret, "cannot load the recording: %s",
		       strerror(-ret));
}

int history_read(struct history *h, struct mpf_reader *r, const struct history_until *until,
		 struct mp_err *err)
{
	struct history_until stop = until ? *until : (struct history_until){0};
	struct lookahead b = {.n = 0};
	int ret = 0, got;

	if (add_spaces(h, mpf_processes(r)))
		return failed(-ENOMEM, err);
	if (h->nspaces == 1)
		live_expect(h->space[0].live, mpf_peak_blocks(r));
	do {
		struct mpf_item *it = &b.item[b.n];

		got = mpf_next(r, it, err);
		if (got < 0)
			return got;
		if (got && it->kind == MPF_EVENT) {
			live_prefetch(h->space[process_of(h, &it->event)].live,
				      it->event.addr & ADDR_MASK);
			if (++b.n < AHEAD)
				continue;
		}
		if (got && it->kind != MPF_EVENT) {
			struct mpf_item other = *it;

			ret = apply_batch(h, &b, &stop);
			if (!ret)
				ret = one(h, &other);
		} else {
			ret = apply_batch(h, &b, &stop);
			if (h->progress.tell && ++h->batches % TELL_EVERY == 0)
				h->progress.tell(h->progress.ctx, mpf_read_share(r));
		}
	} while (got && !ret);
	return failed(ret, err);
}

static int space_live(const struct history *h, uint16_t process,
		      int (*each)(void *ctx, const struct model_block *b), void *ctx)
{
	const struct space *s = &h->space[process];
	struct live_block lb;
	uint64_t at = 0;
	int ret = 0;

	while (!ret && live_next(s->live, &at, &lb)) {
		struct model_block b = pool_block(&h->pool, &lb, process);

		if (is_told(h, &b))
			ret = each(ctx, &b);
	}
	vec_for_each (&s->threads, t) {
		struct model_block b = t->block;

		b.in_realloc = t->tid;
		if (!ret && t->in_realloc && t->known && is_told(h, &b))
			ret = each(ctx, &b);
	}
	return ret;
}

int history_live(const struct history *h, int (*each)(void *ctx, const struct model_block *b),
		 void *ctx)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < h->nspaces; i++)
		ret = space_live(h, (uint16_t)i, each, ctx);
	return ret;
}
