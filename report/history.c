/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/live.h"
#include "lib/vec.h"

#define OWED_MAX 64u
#define OWED_NS	 10000u /* as the recorder: rings of threads are merged by time */

/* What a thread has begun. */
struct per_thread {
	uint32_t tid;
	uint64_t last_alloc; /* its latest block, while it may be temporary */
	bool in_realloc, known;
	struct model_block block;
};

struct history {
	struct history_sink sink;
	struct history_counts counts;
	struct live *live; /* address -> index of the block, in live_block.stack */
	VEC(struct model_block) pool;
	VEC(uint32_t) unused;
	VEC(struct per_thread) threads;
	size_t last_thread;
	struct {
		uint64_t addr, time_ns;
	} owed[OWED_MAX];
	uint32_t nowed;
};

struct history *history_new(const struct history_sink *sink)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->sink = *sink;
	h->live = live_new();
	if (h->live)
		return h;
	free(h);
	return NULL;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	live_free(h->live);
	vec_free(&h->pool);
	vec_free(&h->unused);
	vec_free(&h->threads);
	free(h);
}

const struct history_counts *history_counts(const struct history *h)
{
	return &h->counts;
}

static struct per_thread *thread_state(struct history *h, uint32_t tid)
{
	struct per_thread fresh = {.tid = tid};

	if (h->last_thread < h->threads.n && h->threads.at[h->last_thread].tid == tid)
		return &h->threads.at[h->last_thread];
	for (size_t i = 0; i < h->threads.n; i++) {
		if (h->threads.at[i].tid == tid) {
			h->last_thread = i;
			return &h->threads.at[i];
		}
	}
	if (vec_push(&h->threads, fresh))
		return NULL;
	h->last_thread = h->threads.n - 1;
	return &h->threads.at[h->last_thread];
}

static int tell_end(struct history *h, const struct model_block *b, const struct mp_event *ev,
		    enum block_end how)
{
	return h->sink.ended ? h->sink.ended(h->sink.ctx, b, ev, how) : 0;
}

static int put(struct history *h, const struct model_block *b, const struct mp_event *ev)
{
	struct live_block lb = {.addr = b->addr, .size = b->size}, old;
	uint32_t index;
	int ret;

	if (h->unused.n) {
		index = h->unused.at[--h->unused.n];
		h->pool.at[index] = *b;
	} else {
		index = (uint32_t)h->pool.n;
		if (vec_push(&h->pool, *b))
			return -ENOMEM;
	}
	lb.stack = index;
	if (live_put(h->live, &lb, &old))
		return -ENOMEM;
	if (!old.addr)
		return 0;
	ret = tell_end(h, &h->pool.at[old.stack], ev, BLOCK_LOST);
	h->counts.mismatches++;
	h->owed[h->nowed % OWED_MAX].addr = b->addr;
	h->owed[h->nowed++ % OWED_MAX].time_ns = b->time_ns;
	return vec_push(&h->unused, old.stack) ? -ENOMEM : ret;
}

/* Return: 1 with @b filled, 0 not known, or -ENOMEM. */
static int take(struct history *h, uint64_t addr, struct model_block *b)
{
	struct live_block lb;

	if (!live_take(h->live, addr, &lb))
		return 0;
	*b = h->pool.at[lb.stack];
	return vec_push(&h->unused, lb.stack) ? -ENOMEM : 1;
}

static bool is_owed(struct history *h, uint64_t addr, uint64_t now)
{
	for (uint32_t i = 0; i < OWED_MAX && i < h->nowed; i++) {
		if (h->owed[i].addr == addr && now <= h->owed[i].time_ns + OWED_NS) {
			h->owed[i].addr = 0;
			h->counts.mismatches--;
			return true;
		}
	}
	return false;
}

static int allocated(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	struct model_block b = {.addr = ev->addr,
				.size = ev->size,
				.usable = ev->usable,
				.time_ns = ev->time_ns,
				.stack = ev->stack,
				.tid = ev->tid,
				.hook = ev->hook,
				.flags = ev->flags & (uint8_t)~EV_F_NOT_TEMPORARY};
	int ret = put(h, &b, ev);

	t->last_alloc = ev->addr;
	return ret || !h->sink.allocated ? ret : h->sink.allocated(h->sink.ctx, &b);
}

static int freed(struct history *h, const struct mp_event *ev, struct per_thread *t,
		 const struct model_block *b)
{
	bool temporary =
	    t->last_alloc == b->addr && b->tid == ev->tid && !(ev->flags & EV_F_NOT_TEMPORARY);

	t->last_alloc = 0;
	return tell_end(h, b, ev, temporary ? BLOCK_TEMPORARY : BLOCK_FREED);
}

static int on_free(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	struct model_block b;
	int known;

	if (h->nowed && is_owed(h, ev->addr, ev->time_ns))
		return 0;
	known = take(h, ev->addr, &b);
	if (known < 0)
		return known;
	if (known)
		return freed(h, ev, t, &b);
	if (ev->flags & EV_F_FROM_MODULE)
		h->counts.housekeeping_frees++;
	else
		h->counts.foreign_frees++;
	return 0;
}

static int on_realloc_begin(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	int ret = 0, known;

	if (t->in_realloc && t->known)
		ret = freed(h, ev, t, &t->block); /* its end was lost */
	known = take(h, ev->addr, &t->block);
	t->in_realloc = true;
	t->known = known > 0;
	h->counts.foreign_reallocs += !known;
	return known < 0 ? known : ret;
}

static int on_realloc_end(struct history *h, const struct mp_event *ev, struct per_thread *t)
{
	int ret = 0;

	if (!t->in_realloc)
		return 0;
	t->in_realloc = false;
	if (!ev->addr && !(ev->flags & EV_F_FREED)) {
		h->counts.failed_reallocs++;
		return t->known ? put(h, &t->block, ev) : 0;
	}
	if (t->known)
		ret = freed(h, ev, t, &t->block);
	if (ev->addr && !ret)
		ret = allocated(h, ev, t);
	return ret;
}

static int apply(struct history *h, const struct mp_event *ev)
{
	struct per_thread *t = thread_state(h, ev->tid);

	if (!t)
		return -ENOMEM;
	switch (ev->kind) {
	case EV_ALLOC:
		return allocated(h, ev, t);
	case EV_FREE:
		return on_free(h, ev, t);
	case EV_REALLOC_BEGIN:
		return on_realloc_begin(h, ev, t);
	case EV_REALLOC_END:
		return on_realloc_end(h, ev, t);
	default:
		return 0;
	}
}

int history_read(struct history *h, struct mpf_reader *r, const struct history_until *until,
		 struct mp_err *err)
{
	struct history_until stop = until ? *until : (struct history_until){0};
	struct mpf_item it;
	int ret;

	while ((ret = mpf_next(r, &it, err)) > 0) {
		if (it.kind == MPF_EVENT) {
			if (stop.time_ns && it.event.time_ns > stop.time_ns)
				return 0;
			h->counts.events++;
		}
		ret = h->sink.item ? h->sink.item(h->sink.ctx, &it) : 0;
		if (!ret && it.kind == MPF_EVENT)
			ret = apply(h, &it.event);
		if (ret)
			return mp_fail(err, MP_EXIT_RECORDING, ret, "cannot load the recording: %s",
				       strerror(-ret));
		if (stop.events && h->counts.events == stop.events)
			return 0;
	}
	return ret;
}

int history_live(const struct history *h, int (*each)(void *ctx, const struct model_block *b),
		 void *ctx)
{
	bool *unused = calloc(h->pool.n + 1, 1);
	int ret = unused ? 0 : -ENOMEM;

	if (!unused)
		return ret;
	vec_for_each (&h->unused, u)
		unused[*u] = true;
	for (size_t i = 0; !ret && i < h->pool.n; i++) {
		if (!unused[i])
			ret = each(ctx, &h->pool.at[i]);
	}
	free(unused);
	for (size_t i = 0; !ret && i < h->threads.n; i++) {
		if (h->threads.at[i].in_realloc && h->threads.at[i].known)
			ret = each(ctx, &h->threads.at[i].block);
	}
	return ret;
}
