/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/replay.h"

#include <errno.h>
#include <string.h>
#include "export/output.h"
#include "formats/replay.h"
#include "lib/live.h"
#include "model/filter/selection.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "model/tids.h"

struct replay_slot {
	uint64_t time_ns; /* of the allocation; with the address, it identifies the block */
	uint32_t turns;
};

/* A block in the middle of a realloc: its address can be allocated again before that ends. */
struct moving {
	uint64_t addr;
	uint32_t slot;
};

struct replay {
	struct model *m;
	FILE *out;
	struct live *live; /* address -> slot, in live_block.stack */
	VEC(struct replay_slot) slots;
	VEC(struct moving) moving;
	VEC(uint32_t) unused; /* a ring: the slot that was unused longest is reused first */
	size_t first_unused;
	struct tid_table tids;
	struct replay_tail tail;
	/* A block whose realloc began, until the new block is reported. */
	bool pending;
	uint32_t pending_slot, pending_tid;
};

static void le(uint8_t *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static int put_record(struct replay *r, enum replay_kind kind, uint32_t tid, uint32_t slot,
		      uint64_t size, uint8_t align)
{
	uint32_t worker = tids_index(&r->tids, tid);
	uint8_t op[sizeof(struct replay_op)] = {0};

	if (worker == TIDS_NONE)
		return -ENOMEM;
	worker %= REPLAY_MAX_WORKERS;
	if (worker >= r->tail.workers)
		r->tail.workers = worker + 1;
	le(op, size, 8);
	le(op + 8, slot, 4);
	le(op + 12, r->slots.at[slot].turns++, 4);
	le(op + 16, worker, 2);
	op[18] = kind;
	op[19] = align;
	fwrite_unlocked(op, sizeof(op), 1, r->out);
	r->tail.ops++;
	return 0;
}

/* Return: 0 with a slot in *@slot, or -ENOMEM. */
static int take_slot(struct replay *r, uint32_t *slot)
{
	if (r->first_unused < r->unused.n) {
		*slot = r->unused.at[r->first_unused++];
		/* Removes the used half of the ring when it is the larger one. */
		if (r->first_unused > 4096 && r->first_unused * 2 > r->unused.n) {
			r->unused.n -= r->first_unused;
			memmove(r->unused.at, r->unused.at + r->first_unused,
				r->unused.n * sizeof(r->unused.at[0]));
			r->first_unused = 0;
		}
		return 0;
	}
	*slot = (uint32_t)r->slots.n;
	r->tail.slots = r->slots.n + 1;
	return vec_push(&r->slots, (struct replay_slot){0}) ? -ENOMEM : 0;
}

static int put_free(struct replay *r, uint32_t tid, uint32_t slot)
{
	int ret = put_record(r, REPLAY_FREE, tid, slot, 0, 0);

	return ret || vec_push(&r->unused, slot) ? -ENOMEM : 0;
}

/* If the filter excludes the new block of a realloc, the realloc becomes a free. */
static int end_pending(struct replay *r)
{
	if (!r->pending)
		return 0;
	r->pending = false;
	return put_free(r, r->pending_tid, r->pending_slot);
}

static bool contains(const char *s, const char *part)
{
	return strstr(s, part) != NULL;
}

static enum replay_kind kind_of(const struct model *m, const struct model_block *b, uint8_t *align)
{
	const char *name = b->hook < m->facts.hooks.n ? m->facts.hooks.at[b->hook].name : "malloc";

	if (contains(name, "valloc")) {
		*align = 12;
		return REPLAY_ALIGNED;
	}
	if (contains(name, "align")) {
		while (*align < 6 && !(b->addr >> *align & 1))
			++*align;
		*align = *align < 3 ? 3 : *align;
		return REPLAY_ALIGNED;
	}
	return contains(name, "calloc") ? REPLAY_CALLOC : REPLAY_MALLOC;
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	struct replay *r = ctx;
	struct live_block lb = {.addr = b->addr, .size = b->size}, old;
	enum replay_kind kind = REPLAY_REALLOC;
	uint8_t align = 0;

	if (r->pending) {
		r->pending = false;
		lb.stack = r->pending_slot;
	} else {
		kind = kind_of(r->m, b, &align);
		if (take_slot(r, &lb.stack))
			return -ENOMEM;
	}
	if (live_put(r->live, &lb, &old) ||
	    (old.addr && vec_push(&r->moving, ((struct moving){old.addr, old.stack}))))
		return -ENOMEM;
	r->slots.at[lb.stack].time_ns = b->time_ns;
	r->tail.live_bytes += b->size;
	r->tail.live_blocks++;
	return put_record(r, kind, b->tid, lb.stack, b->size, align);
}

static bool is_in(const struct replay *r, const struct model_block *b, uint32_t slot)
{
	return r->slots.at[slot].time_ns == b->time_ns;
}

/* Removes @b.  Return: whether it was present; then *@slot was its slot. */
static bool leave(struct replay *r, const struct model_block *b, uint32_t *slot)
{
	struct live_block lb, none;

	for (size_t i = 0; i < r->moving.n; i++) {
		if (r->moving.at[i].addr != b->addr || !is_in(r, b, r->moving.at[i].slot))
			continue;
		*slot = r->moving.at[i].slot;
		r->moving.at[i] = r->moving.at[--r->moving.n];
		return true;
	}
	if (!live_take(r->live, b->addr, &lb))
		return false;
	*slot = lb.stack;
	if (is_in(r, b, lb.stack))
		return true;
	(void)live_put(r->live, &lb, &none); /* cannot fail: there was room for it before */
	return false;
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	struct replay *r = ctx;
	uint32_t slot;

	if (!leave(r, b, &slot))
		return 0;
	r->tail.live_bytes -= b->size;
	r->tail.live_blocks--;
	if (!history_continues(by, how))
		return put_free(r, by->tid, slot);
	r->pending = true;
	r->pending_slot = slot;
	r->pending_tid = by->tid;
	return 0;
}

static int culled(struct replay *r, const struct mp_culled *c)
{
	struct mp_culled part = *c;
	uint64_t unjudged;
	int ret = c->blocks > UINT32_MAX ? -EFBIG : 0; /* does not happen in real recordings */

	if (r->m->source.selection)
		part = selection_part(r->m->source.selection, c, &unjudged);
	for (uint64_t i = 0; i < part.blocks && !ret; i++) {
		uint32_t slot;

		ret = take_slot(r, &slot);
		if (!ret)
			ret = put_record(r, REPLAY_MALLOC, c->tid, slot, c->size, 0);
		if (!ret)
			ret = put_free(r, c->free_tid, slot);
		if (ferror_unlocked(r->out))
			ret = -EIO;
	}
	return ret;
}

static int on_event(void *ctx, const struct mp_event *ev)
{
	struct replay *r = ctx;
	int ret = end_pending(r);

	(void)ev;
	return ret ? ret : ferror_unlocked(r->out) ? -EIO : 0;
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct replay *r = ctx;
	int ret = end_pending(r);

	if (!ret && it->kind == MPF_CULLED)
		ret = culled(r, &it->culled);
	return ret ? ret : ferror_unlocked(r->out) ? -EIO : 0;
}

static void put_tail(struct replay *r)
{
	const uint64_t v[] = {r->tail.ops,	     r->tail.slots,	 r->tail.workers,
			      r->m->sums.peak_bytes, r->tail.live_bytes, r->tail.live_blocks,
			      r->tail.reserved};
	uint8_t buf[sizeof(struct replay_tail)];

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		le(buf + 8 * i, v[i], 8);
	memcpy(buf + sizeof(v), REPLAY_END, 8);
	fwrite(buf, sizeof(buf), 1, r->out);
}

int replay_write(struct model *m, FILE *out, struct mp_err *err)
{
	struct replay r = {.m = m, .out = out, .live = live_new(80)};
	struct history_sink sink = {.item = on_item,
				    .event = on_event,
				    .allocated = on_allocated,
				    .ended = on_ended,
				    .ctx = &r};
	uint8_t head[sizeof(struct replay_head)] = REPLAY_MAGIC;
	int ret;

	if (model_is_estimated(m)) {
		live_free(r.live);
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "report: --replay: %s is sampled or thinned; only a recording of all "
		    "allocations can be replayed",
		    m->source.path);
	}
	if (m->tasks.processes.n) {
		live_free(r.live);
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "report: --replay: %s is of %zu processes; only a recording of one "
			       "process can be replayed",
			       m->source.path, m->tasks.processes.n);
	}
	ret = output_refuse_terminal(out, err);
	if (ret) {
		live_free(r.live);
		return ret;
	}
	le(head + 8, REPLAY_VERSION, 4);
	fwrite(head, sizeof(head), 1, out);
	ret = r.live ? model_replay(m, &sink, NULL, err)
		     : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret && end_pending(&r))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret)
		put_tail(&r);
	live_free(r.live);
	vec_free(&r.slots);
	vec_free(&r.moving);
	vec_free(&r.unused);
	tids_free(&r.tids);
	return ret;
}
