/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/culling/cull_file.h"

#include <errno.h>
#include <string.h>
#include "formats/file.h"
#include "lib/estimate.h"
#include "lib/live.h"
#include "lib/vec.h"
#include "record/culling/cull.h"
#include "record/levels.h"

#define SLICE_NS 1000000000u
#define IS_HELD	 CULL_NUMBERS

/* A block that its thread is reallocating. */
struct pending {
	uint32_t tid;
	bool known;
	struct live_block block;
	struct cull_realloc begun;
};

struct strip {
	uint64_t age_ns;
	struct cull *cull; /* created with the first item, since it writes to the new file */
	bool is_culled;	   /* the recording was, so it has what was live over time */
	/* live_block.stack: a stack id; or with IS_HELD set, the block's number in cull */
	struct live *live;
	VEC(struct pending) reallocs;
	struct levels levels;
	/* The ids of stacks in a file can be any numbers: those in levels count from 0 */
	VEC(uint32_t) ids;
	struct live *number_of;	   /* (id + 1) << 4 -> number in levels, in live_block.stack */
	uint64_t event_ns;	   /* of the current event */
	uint64_t now_ns, slice_ns; /* now_ns never decreases */
	bool ended;		   /* the culling has been flushed and no event was added since */
};

/* ---------------------------------------------------------------- what is live -- */

/* Return: 0 with the number of stack @id in levels, or -ENOMEM. */
static int number_of(struct strip *s, uint32_t id, uint32_t *number)
{
	struct live_block b = {.addr = ((uint64_t)id + 1) << 4, .stack = (uint32_t)s->ids.n}, old;

	if (live_find(s->number_of, b.addr, &old)) {
		*number = old.stack;
		return 0;
	}
	*number = b.stack;
	return vec_push(&s->ids, id) || live_put(s->number_of, &b, &old) ? -ENOMEM : 0;
}

static int change(struct strip *s, const struct live_block *b, bool ends, bool carried)
{
	struct estimate e = estimate_block(0, b->size, b->weight, 0);
	struct level_change c = {s->event_ns, e.bytes, e.blocks, 0, ends, carried};

	return number_of(s, b->stack, &c.stack) ? -ENOMEM : levels_change(&s->levels, &c);
}

/* Replaces the number in a live block by its stack.  Return: the number, or CULL_NONE. */
static uint32_t resolve(const struct strip *s, struct live_block *b)
{
	uint32_t number = b->stack & ~IS_HELD;

	if (!(b->stack & IS_HELD))
		return CULL_NONE;
	b->stack = cull_born(s->cull, number)->stack;
	return number;
}

static void let_go(void *ctx, const struct mp_event *ev)
{
	struct strip *s = ctx;
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, old;

	(void)live_put(s->live, &b, &old); /* cannot fail, because the address is in it */
}

static void ahead(void *ctx, uint64_t addr)
{
	live_prefetch(((const struct strip *)ctx)->live, addr);
}

/* @number: of the block that @ev allocates; or CULL_NONE. */
static int begin_block(struct strip *s, const struct mp_event *ev, uint32_t number)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight}, entry = b, old = {0};
	uint32_t replaced = CULL_NONE;

	if (number != CULL_NONE)
		entry.stack = number | IS_HELD;
	if (live_put(s->live, &entry, &old))
		return -ENOMEM;
	if (old.addr) {
		replaced = resolve(s, &old);
		if (change(s, &old, true, false))
			return -ENOMEM;
		if (replaced != CULL_NONE)
			cull_forget(s->cull, replaced);
		/* The next free of the address could be that of either block. */
		if (number != CULL_NONE) {
			cull_forget(s->cull, number);
			let_go(s, ev);
		}
	}
	return change(s, &b, false, ev->flags & EV_F_CARRIED);
}

/* A carried block is not a call, so it must not be added to sums of calls. */
static int put_alloc(struct strip *s, const struct mp_event *ev)
{
	uint32_t number = CULL_NONE;
	int ret = ev->flags & EV_F_CARRIED || !ev->addr ? cull_put(s->cull, ev)
							: cull_begin(s->cull, ev, &number);

	return ret || !ev->addr ? ret : begin_block(s, ev, number);
}

static int put_free(struct strip *s, const struct mp_event *ev)
{
	struct live_block b;
	uint32_t number = CULL_NONE;
	int ret = 0;

	if (live_take(s->live, ev->addr, &b)) {
		number = resolve(s, &b);
		ret = change(s, &b, true, false);
	}
	if (ret)
		return ret;
	return number == CULL_NONE ? cull_put(s->cull, ev) : cull_end(s->cull, number, ev);
}

static struct pending *pending_of(struct strip *s, uint32_t tid)
{
	struct pending fresh = {.tid = tid, .begun = {.node = CULL_NONE}};

	vec_for_each (&s->reallocs, p) {
		if (p->tid == tid)
			return p;
	}
	return vec_push(&s->reallocs, fresh) ? NULL : &s->reallocs.at[s->reallocs.n - 1];
}

static int begin_realloc(struct strip *s, const struct mp_event *ev)
{
	struct pending *p = pending_of(s, ev->tid);
	uint32_t number = CULL_NONE;

	if (!p || (p->known && change(s, &p->block, true, false)))
		return -ENOMEM;
	p->begun.node = CULL_NONE;
	p->known = live_take(s->live, ev->addr, &p->block);
	if (p->known)
		number = resolve(s, &p->block);
	return number == CULL_NONE ? cull_put(s->cull, ev)
				   : cull_resize(s->cull, number, ev, &p->begun);
}

static int end_realloc(struct strip *s, const struct mp_event *ev)
{
	struct pending *p = pending_of(s, ev->tid);
	struct live_block old;
	uint32_t number;
	bool known;
	int ret;

	if (!p)
		return -ENOMEM;
	known = p->known;
	p->known = false;
	if (known && !ev->addr && !(ev->flags & EV_F_FREED) && live_put(s->live, &p->block, &old))
		return -ENOMEM;
	if (known && (ev->addr || ev->flags & EV_F_FREED) && change(s, &p->block, true, false))
		return -ENOMEM;
	if (!ev->addr)
		return cull_put(s->cull, ev);
	ret = cull_resized(s->cull, &p->begun, ev, &number);
	p->begun.node = CULL_NONE;
	return ret ? ret : begin_block(s, ev, number);
}

/* ---------------------------------------------------------------- items -- */

static int put_time(struct strip *s, struct mpf_writer *w, uint64_t now_ns)
{
	int ret = 0;

	if (now_ns > s->now_ns)
		s->now_ns = now_ns;
	if (!s->is_culled)
		ret = levels_time(&s->levels, s->now_ns, w);
	/* Write the events that are old enough by now, before they can be culled. */
	if (!ret && s->age_ns != UINT64_MAX)
		ret = cull_advance(s->cull, s->now_ns);
	if (!ret && s->now_ns >= s->slice_ns) {
		s->slice_ns = s->now_ns + SLICE_NS;
		ret = cull_put_sums(s->cull, s->now_ns);
	}
	return ret;
}

static int put_event(struct strip *s, struct mpf_writer *w, const struct mp_event *ev)
{
	int ret = put_time(s, w, ev->time_ns);

	s->event_ns = ev->time_ns;
	s->ended = false;
	if (ret)
		return ret;
	switch (ev->kind) {
	case EV_ALLOC:
		return put_alloc(s, ev);
	case EV_FREE:
		return put_free(s, ev);
	case EV_REALLOC_BEGIN:
		return begin_realloc(s, ev);
	case EV_REALLOC_END:
		return end_realloc(s, ev);
	default:
		return cull_put(s->cull, ev);
	}
}

/* Writes the events held back, before the items that end the file. */
static int end_strip(struct strip *s, struct mpf_writer *w)
{
	int ret;

	if (s->ended)
		return 0;
	ret = cull_advance(s->cull, UINT64_MAX);
	if (!ret)
		ret = cull_put_sums(s->cull, s->now_ns);
	if (!ret && !s->is_culled)
		ret = levels_end(&s->levels, s->now_ns, s->ids.at, w);
	s->ended = true;
	return ret;
}

static int on_item(void *ctx, struct mpf_writer *w, const struct mpf_item *it)
{
	struct strip *s = ctx;
	int ret = 0;

	if (!s->cull)
		s->cull = cull_new(&(struct cull_config){.age_ns = s->age_ns,
							 .most = UINT32_MAX,
							 .let_go = let_go,
							 .ahead = ahead,
							 .ctx = s},
				   w);
	if (!s->cull)
		return -ENOMEM;
	if (it->kind == MPF_EVENT)
		return put_event(s, w, &it->event);
	if (it->kind == MPF_MARK)
		ret = cull_put_sums(s->cull, it->mark.time_ns);
	if (it->kind == MPF_SYMBOLS || it->kind == MPF_FINISH) {
		if (it->kind == MPF_FINISH && it->finish.end_ns > s->now_ns)
			s->now_ns = it->finish.end_ns;
		ret = end_strip(s, w);
	}
	return ret ? ret : mpf_put_item(w, it);
}

static int on_end(void *ctx, struct mpf_writer *w)
{
	struct strip *s = ctx;

	return s->cull ? end_strip(s, w) : 0;
}

static void on_info(void *ctx, struct mp_info *info)
{
	const struct strip *s = ctx;

	if (info->cull_ns < s->age_ns)
		info->cull_ns = s->age_ns;
}

int recording_strip(const char *from, const char *to, uint64_t age_ns, bool *truncated,
		    struct mp_err *err)
{
	struct strip s = {.age_ns = age_ns, .live = live_new(80), .number_of = live_new(80)};
	struct mpf_change change = {
	    .info = on_info, .item = on_item, .end = on_end, .binaries = true, .ctx = &s};
	struct mpf_reader *r = NULL;
	struct mp_info info = {0};
	int ret = s.live && s.number_of ? mpf_open(from, &r, &info, err)
					: mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");

	if (!ret) {
		if (info.sample_interval)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is a sampled recording, whose blocks represent others "
				      "and cannot be replaced by sums",
				      from);
		if (info.processes)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is of several processes: strip their recordings, then "
				      "merge them",
				      from);
		if (info.what == MP_PAGE_FAULTS)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is of page faults: it has no blocks to strip", from);
		s.is_culled = info.cull_ns != 0;
		mpf_reader_free(r);
	}
	levels_begin(&s.levels, 0);
	if (!ret)
		ret = mpf_copy(from, to, &change, truncated, err);
	cull_free(s.cull);
	live_free(s.live);
	live_free(s.number_of);
	vec_free(&s.ids);
	levels_free(&s.levels);
	vec_free(&s.reallocs);
	return ret;
}
