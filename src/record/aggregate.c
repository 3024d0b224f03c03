/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The aggregator thread: sorts and decodes the records, maintains the live table, writes the
 * recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "inject/block/dumped.h"
#include "inject/session.h"
#include "lib/deadline.h"
#include "lib/privileges.h"
#include "record/internal.h"

#define FLUSH_NS 1000000000ull
#define USAGE_NS 10000000000ull
/* Live table entries are prefetched in bursts: this many cache misses proceed in parallel, more
 * would wait for each other. */
#define BURST 4u
#define MOVES 1024u /* events between two calls of aggregator_moves() */
#define AHEAD 8u    /* distance from the current event to the first of a burst */

/* ---------------------------------------------------------------- stacks -- */

/* Return: whether a caller in the stack is a hooked allocator function: then the allocator made
 * the mapping for itself. */
static bool inside_allocator(const struct recorder *r, const uint64_t *pc, uint32_t n)
{
	const struct ss_journal *j = r->config.journal;
	uint32_t hooks = __atomic_load_n(&j->nhooks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 1; i < n; i++) {
		uint64_t at = pc[i] & ~SS_PC_EXACT;

		for (uint32_t k = 0; k < hooks; k++) {
			uint32_t kind;

			if (session_hook_spans(&j->hook[k], at, &kind) && kind < SS_HOOK_MMAP)
				return true;
		}
	}
	return false;
}

uint32_t stack_add(struct recorder *r, const uint64_t *pc, uint32_t n, uint32_t flags)
{
	uint32_t id, all = n;
	bool fresh;

	if (r->config.max_depth && n > r->config.max_depth) {
		n = r->config.max_depth;
		flags |= SS_STACK_CUT;
	}
	id = stacks_intern(&r->stacks, pc, n, flags, &fresh);

	if (fresh) {
		r->stacks.at[id].inner = inside_allocator(r, pc, all);
		r->now.stacks++;
	}
	return stack_use(r, id);
}

uint32_t stack_use(struct recorder *r, uint32_t id)
{
	struct stack *s = &r->stacks.at[id];
	uint64_t pc[SS_MAX_FRAMES];

	if (id && s->piece != r->piece.number + 1) {
		s->piece = r->piece.number + 1;
		stacks_pcs(&r->stacks, id, pc);
		r->now.error = mpf_put_stack(r->file, id, s->flags, pc, s->n);
	}
	return id;
}

static uint32_t stack_id(struct recorder *r, uint32_t slot, uint32_t agent_id)
{
	struct live_block known = {.addr = (uint64_t)agent_id << 4, .size = 1}, old;
	uint64_t pc[SS_MAX_FRAMES];
	const struct ss_stack *s;
	uint32_t n, flags;

	if (agent_id == MPR_STACK_NONE)
		return 0;
	if (agent_id & MPR_STACK_RAW) {
		struct slot_state *st = &r->slot[slot];

		return st->raw_sequence == (agent_id & ~MPR_STACK_RAW) ? stack_use(r, st->raw_stack)
								       : 0;
	}
	if (agent_id >= r->arena_words)
		return 0;
	if (live_find(r->stack_of_word, known.addr, &known))
		return stack_use(r, known.stack);
	s = (const struct ss_stack *)((const char *)r->config.block + r->arena + 8ull * agent_id);
	n = s->n;
	flags = s->flags;
	if (n > SS_MAX_FRAMES || agent_id + 1ull + n > r->arena_words)
		return 0;
	memcpy(pc, s->pc, n * sizeof(*pc)); /* copied once: the target could change it */
	n = stack_by_fp(r, pc, n, &flags);
	known.stack = stack_add(r, pc, n, flags);
	if (known.stack && live_put(r->stack_of_word, &known, &old))
		r->losses.stacks_full++;
	return known.stack;
}

/* Looks for new unwind tables after meeting code without one.  This is slow, and code that never
 * gets a table is met again and again, so at most a tenth of the time is spent on it. */
static bool code_changed(struct recorder *r)
{
	uint64_t start = mono_ns(), end;
	bool changed;

	if (start < r->next_code_ns)
		return false;
	changed = r->config.code_changed(r->config.ctx);
	end = mono_ns();
	r->next_code_ns = end + 9 * (end - start);
	return changed;
}

static void take_raw(struct recorder *r, uint32_t slot, const struct mpr_raw_stack *raw)
{
	struct dumped d = {.arch = arch_native(),
			   .valid = (uint32_t)raw->reg_valid,
			   .stack = (const uint8_t *)(raw + 1),
			   .stack_bytes = raw->bytes};
	uint64_t pc[SS_MAX_FRAMES];
	uint32_t n, flags;
	bool unknown;

	if (raw->bytes > raw->h.size - sizeof(*raw))
		return;
	memcpy(d.regs, raw->regs, sizeof(d.regs));
	n = dumped_unwind(r->config.block, r->config.block_length, &d, pc, SS_MAX_FRAMES, &flags,
			  &unknown);
	if (unknown && code_changed(r))
		n = dumped_unwind(r->config.block, r->config.block_length, &d, pc, SS_MAX_FRAMES,
				  &flags, &unknown);
	n = stack_by_fp(r, pc, n, &flags);
	r->slot[slot].raw_sequence = raw->sequence;
	r->slot[slot].raw_stack = stack_add(r, pc, n, flags);
	aggregator_moves(r);
}

/* ---------------------------------------------------------------- decoding -- */

static void fill_misc(struct mp_event *ev, uint16_t misc)
{
	uint32_t slack = misc >> MPR_SLACK_SHIFT;

	ev->usable = slack == MPR_SLACK_UNKNOWN ? ev->size : ev->size + slack;
	ev->flags =
	    (misc & MPR_F_NON_MAIN ? EV_F_NON_MAIN : 0) | (misc & MPR_F_MMAPPED ? EV_F_MMAPPED : 0);
}

static void split(struct mp_event *ev, uint64_t addr_hook)
{
	ev->addr = addr_hook & MPR_ADDR_MASK;
	ev->hook = (uint16_t)(addr_hook >> MPR_ADDR_BITS);
}

static void count_stack(struct recorder *r, uint32_t id)
{
	r->losses.stacks_total++;
	r->losses.stacks_complete += id && r->stacks.at[id].flags & SS_STACK_COMPLETE;
}

/* Counts an allocation that is left out.  If its address was live, that block must have been freed:
 * the event becomes a free without a hook.  Return: whether there is such an event to write. */
static bool leave_out(struct recorder *r, struct mp_event *ev)
{
	struct live_block old;

	r->losses.left_out_allocs++;
	overtaken_free(r, ev->addr);
	if (!block_take(r, ev->addr, &old, NULL))
		return false;
	block_replaced(r, &old);
	ev->kind = EV_FREE;
	ev->hook = UINT16_MAX;
	return true;
}

/* Return: whether no allocator can have returned this block, so that the record is false. */
static bool impossible(struct recorder *r, const struct mp_event *ev)
{
	if (ev->addr && ev->size <= LIVE_MAX_SIZE)
		return false;
	r->losses.lost_other++;
	return true;
}

static bool decode_alloc(struct recorder *r, uint32_t slot, const struct mpr_header *h,
			 struct mp_event *ev)
{
	const struct mpr_alloc *a = (const void *)h;
	const struct mpr_alloc_big *big = (const void *)h;

	ev->kind = EV_ALLOC;
	split(ev, a->addr_hook);
	if (r->selects && select_leaves_out(r, &r->slot[slot]))
		return leave_out(r, ev);
	ev->size = h->type == MPR_ALLOC ? a->size : big->size;
	if (impossible(r, ev))
		return false;
	ev->stack = stack_id(r, slot, h->type == MPR_ALLOC ? a->stack : big->stack);
	fill_misc(ev, h->misc);
	count_stack(r, ev->stack);
	r->now.allocs++;
	r->now.allocated_bytes += ev->size;
	block_born(r, ev);
	return true;
}

static bool decode_free(struct recorder *r, uint32_t slot, const struct mpr_free *f,
			struct mp_event *ev)
{
	bool own_free = f->h.misc & MPR_F_OWN_FREE;
	struct live_block b;

	ev->kind = EV_FREE;
	split(ev, f->addr_hook);
	ev->flags = own_free ? EV_F_OWN_FREE : 0;
	if (f->h.type == MPR_FREE_STACK)
		ev->stack = stack_id(r, slot, ((const struct mpr_free_stack *)f)->stack);
	if (ev->stack)
		ev->flags |= EV_F_STACK;
	/* Written now, it would be the free of the new block */
	if (own_free && overtaken_by_alloc(r, ev->addr))
		return false;
	if (block_gone(r, ev->addr, own_free, &b)) {
		block_account(r, &b, -1);
		r->now.frees++;
		return true;
	}
	return !r->selects;
}

static bool decode_realloc_begin(struct recorder *r, uint32_t slot, const struct mpr_free *f,
				 struct mp_event *ev)
{
	struct slot_state *st = &r->slot[slot];

	ev->kind = EV_REALLOC_BEGIN;
	split(ev, f->addr_hook);
	drop_realloc(r, st);
	st->in_realloc = true;
	st->realloc_known = block_end(r, ev->addr, &st->realloc_block, &st->realloc_origin);
	if (st->realloc_known)
		return true;
	if (r->selects && select_leaves_out(r, st)) {
		r->losses.left_out_allocs++;
		st->in_realloc = false;
		return false;
	}
	r->losses.foreign_reallocs++;
	return true;
}

static bool decode_realloc_end(struct recorder *r, uint32_t slot, const struct mpr_realloc *e,
			       struct mp_event *ev)
{
	struct slot_state *st = &r->slot[slot];
	struct live_block old;

	ev->kind = EV_REALLOC_END;
	split(ev, e->addr_hook);
	ev->old_addr = e->old_addr & MPR_ADDR_MASK;
	ev->size = ev->usable = e->size;
	if (!st->in_realloc)
		return false; /* its beginning was lost and counted, or left out */
	if (!ev->addr && !e->freed) {
		st->in_realloc = false;
		if (st->realloc_known)
			block_put(r, &st->realloc_block, &st->realloc_origin, &old);
		return true;
	}
	drop_realloc(r, st);
	if (e->freed)
		ev->flags = EV_F_FREED;
	if (ev->addr && impossible(r, ev))
		return false;
	if (ev->addr) {
		ev->stack = stack_id(r, slot, e->stack);
		fill_misc(ev, e->h.misc);
		count_stack(r, ev->stack);
		r->now.allocs++;
		r->now.allocated_bytes += ev->size;
		block_born(r, ev);
	}
	return true;
}

/* Counts memory that the program maps for itself: anonymous and writable, so not address space
 * that is only reserved. */
static void count_map(struct recorder *r, const struct mp_event *ev)
{
	struct stack *s = &r->stacks.at[ev->stack];

	if (ev->kind != EV_MAP || ev->flags & EV_F_INNER || !(ev->mapflags & MAP_ANONYMOUS) ||
	    !(ev->prot & PROT_WRITE))
		return;
	s->mapped_bytes += ev->size;
	s->mappings++;
	r->now.mapped_bytes += ev->size;
	r->now.mappings++;
}

static bool decode_map(struct recorder *r, uint32_t slot, const struct mpr_map *m,
		       struct mp_event *ev)
{
	static const uint8_t kind[] = {
	    [MPR_MAP - MPR_MAP] = EV_MAP,
	    [MPR_UNMAP - MPR_MAP] = EV_UNMAP,
	    [MPR_UNMAP_FAILED - MPR_MAP] = EV_UNMAP_FAILED,
	    [MPR_REMAP_BEGIN - MPR_MAP] = EV_REMAP_BEGIN,
	    [MPR_REMAP_END - MPR_MAP] = EV_REMAP_END,
	};

	if (r->selects && select_leaves_out(r, &r->slot[slot]))
		return false;
	ev->kind = kind[m->h.type - MPR_MAP];
	split(ev, m->addr_hook);
	ev->size = ev->usable = m->length;
	ev->old_addr = m->old_addr & MPR_ADDR_MASK;
	ev->prot = m->prot;
	ev->mapflags = m->flags;
	ev->fd = m->fd;
	ev->stack = stack_id(r, slot, m->stack);
	if (m->h.misc & MPR_F_INNER || (ev->stack && r->stacks.at[ev->stack].inner))
		ev->flags |= EV_F_INNER;
	count_map(r, ev);
	return true;
}

/* Pages count as live for ever, since their removal is not observed. */
static bool decode_fault(struct recorder *r, uint32_t slot, const struct mpr_fault *f,
			 struct mp_event *ev)
{
	struct stack *s;

	if (r->selects && select_leaves_out(r, &r->slot[slot])) {
		r->losses.left_out_allocs++;
		return false;
	}
	ev->kind = EV_FAULT;
	ev->hook = UINT16_MAX;
	ev->addr = f->addr;
	ev->size = ev->usable = f->page;
	ev->flags = (f->h.misc & MPR_F_MAJOR ? EV_F_MAJOR : 0) |
		    (f->h.misc & MPR_F_NO_SIZE ? EV_F_NO_SIZE : 0);
	ev->stack = stack_id(r, slot, f->stack);
	count_stack(r, ev->stack);
	s = &r->stacks.at[ev->stack];
	s->live_bytes += f->page;
	s->live_blocks++;
	r->now.allocs++;
	r->now.allocated_bytes += f->page;
	return true;
}

static void put_marks(struct recorder *r, uint64_t now)
{
	VEC(char *) marks;

	/* The marks are written without the lock, since the disk can be slow. */
	pthread_mutex_lock(&r->lock);
	memcpy(&marks, &r->marks, sizeof(marks));
	memset(&r->marks, 0, sizeof(r->marks));
	pthread_mutex_unlock(&r->lock);
	vec_for_each (&marks, name) {
		mpf_put_mark(r->file, now, *name);
		free(*name);
	}
	vec_free(&marks);
}

void put_hooks_and_modules(struct recorder *r)
{
	const struct ss_journal *j = r->config.journal;
	uint32_t names = __atomic_load_n(&j->nnames, __ATOMIC_ACQUIRE);
	struct mp_module m;

	while (r->hooks_written < names) {
		const struct ss_hook_name *h = &j->name[r->hooks_written++];
		char name[sizeof(h->name) + 1], module[sizeof(h->module) + 1];
		struct mp_hook_info info = {name, module, h->kind};

		snprintf(name, sizeof(name), "%.*s", (int)sizeof(h->name), h->name);
		snprintf(module, sizeof(module), "%.*s", (int)sizeof(h->module), h->module);
		mpf_put_hook(r->file, &info);
	}
	while (r->config.next_module(r->config.ctx, &m))
		mpf_put_module(r->file, &m);
}

void event_process(struct recorder *r, const struct pending *p, uint64_t ns)
{
	const struct mpr_header *h = (const void *)p->rec;
	struct mp_event ev = {.time_ns = ns, .tid = r->slot[p->slot].tid, .fd = -1};
	const struct mpr_mallopt *opt;
	bool put = false;

	r->last_ns = ns;
	r->replaced = false;
	r->at_slot = p->slot;
	losses_see(r, h->type);
	switch (h->type) {
	case MPR_ALLOC:
	case MPR_ALLOC_BIG:
		put = decode_alloc(r, p->slot, h, &ev);
		break;
	case MPR_FREE:
	case MPR_FREE_STACK:
		put = decode_free(r, p->slot, (const void *)h, &ev);
		break;
	case MPR_REALLOC_BEGIN:
		put = decode_realloc_begin(r, p->slot, (const void *)h, &ev);
		break;
	case MPR_REALLOC_END:
		put = decode_realloc_end(r, p->slot, (const void *)h, &ev);
		break;
	case MPR_MALLOPT:
		opt = (const void *)h;
		ev.kind = EV_MALLOPT;
		ev.size = (uint64_t)(int64_t)opt->param;
		ev.usable = (uint64_t)(int64_t)opt->value;
		ev.fd = opt->result;
		ev.stack = stack_id(r, p->slot, opt->stack);
		put = true;
		break;
	case MPR_FAULT:
		put = decode_fault(r, p->slot, (const void *)h, &ev);
		break;
	case MPR_RAW_STACK:
		take_raw(r, p->slot, (const void *)h);
		return;
	case MPR_THREAD:
		drop_realloc(r, &r->slot[p->slot]);
		r->slot[p->slot].tid = ((const struct mpr_thread *)h)->tid;
		return;
	default:
		put = decode_map(r, p->slot, (const void *)h, &ev);
	}
	if (put) {
		/* The name of a hook must be in the file before its first event. */
		if (ev.hook >= r->hooks_written && ev.hook != UINT16_MAX)
			put_hooks_and_modules(r);
		r->now.events++;
		r->now.error =
		    r->cull ? cull_put(r->cull, &ev, r->replaced) : mpf_put_event(r->file, &ev);
	}
}

/* ---------------------------------------------------------------- a batch -- */

/* Prefetches the live table entries of some events after @i. */
static void prefetch(const struct recorder *r, size_t i)
{
	const struct pending *e = r->order.events;
	size_t end = i + AHEAD + BURST < r->order.n ? i + AHEAD + BURST : r->order.n;

	for (i += AHEAD; i < end; i++)
		live_prefetch(r->live,
			      ((const struct mpr_free *)e[i].rec)->addr_hook & MPR_ADDR_MASK);
}

static void run_batch(struct recorder *r, struct batch *b)
{
	struct clock clock;
	size_t i;

	for (uint32_t k = 0; k < b->nsegments; k++) {
		struct slot_state *st = &r->slot[b->segment[k].slot];

		if (!st->tid || b->after_loss)
			st->tid = b->segment[k].tid;
	}
	r->losses.lost_other += order_take(&r->order, b, clock_ticks());
	pthread_mutex_lock(&r->clock_lock);
	clock = r->clock;
	pthread_mutex_unlock(&r->clock_lock);
	r->tick_rate = (uint64_t)(1000 / clock.ns_per_tick) + 1;
	for (i = 0; i < r->order.n && r->order.events[i].time <= b->until; i++) {
		const struct pending *e = &r->order.events[i];

		if (!(i % BURST))
			prefetch(r, i);
		if (!(i % MOVES))
			aggregator_moves(r);
		r->at = i;
		if (e->slot != ORDER_TAKEN)
			event_process(r, e, clock_ns(&clock, e->time));
	}
	order_keep(&r->order, i);
}

/* ---------------------------------------------------------------- the thread -- */

void release_culled(struct recorder *r, uint64_t upto)
{
	int ret = r->cull ? cull_advance(r->cull, upto) : 0;

	if (r->cull && !ret)
		ret = cull_put_sums(r->cull);
	if (ret)
		r->now.error = ret;
}

void each_second(struct recorder *r, uint64_t now)
{
	struct mp_losses l;

	pthread_mutex_lock(&r->clock_lock);
	clock_adjust(&r->clock);
	pthread_mutex_unlock(&r->clock_lock);
	put_hooks_and_modules(r);
	release_culled(r, now);
	look_at_target(r, now);
	l = recorder_losses(r);
	mpf_put_losses(r->file, &l);
	r->now.error = mpf_flush(r->file);
}

/* Completes a flush: writes the file up to the barrier and wakes the waiting threads. */
static void reach(struct recorder *r, const struct batch *b, uint64_t now)
{
	struct mp_losses l;
	struct recorder_boundary at = {.barrier = b->barrier,
				       .events = r->now.events - r->piece.before.events};

	at.time_ns = b->until == UINT64_MAX ? now : clock_ns(&r->clock, b->until);
	put_marks(r, at.time_ns);
	at.time_ns -= at.time_ns < r->piece.base_ns ? at.time_ns : r->piece.base_ns;
	release_culled(r, UINT64_MAX);
	l = recorder_losses(r); /* includes the events just released */
	mpf_put_losses(r->file, &l);
	r->now.error = mpf_flush(r->file);
	at.file_bytes = mpf_bytes(r->file);
	pthread_mutex_lock(&r->lock);
	r->boundary = at;
	pthread_cond_broadcast(&r->flushed);
	pthread_mutex_unlock(&r->lock);
}

/* Reads the target's state for the last time: later changes are not part of the recording. */
static void last_look(struct recorder *r)
{
	uint64_t now;

	if (r->end_ns)
		return;
	now = clock_ns(&r->clock, clock_ticks());
	r->next_usage_ns = 0;
	look_at_target(r, now);
	r->end_ns = now;
}

void *aggregator_run(void *arg)
{
	struct recorder *r = arg;
	struct batch *b;

	privileges_keep(PRIVILEGES_TARGET);
	put_hooks_and_modules(r);
	if (r->config.carry)
		carry_in(r, r->config.carry);
	if (r->config.info.what == MP_PAGE_FAULTS) /* initial memory use */
		look_at_target(r, clock_ns(&r->clock, clock_ticks()));
	while ((b = queue_get(r->queue))) {
		uint64_t now;

		run_batch(r, b);
		if (__atomic_load_n(&r->let_go, __ATOMIC_ACQUIRE))
			last_look(r);
		now = clock_ns(&r->clock, clock_ticks());
		if (now - r->last_flush_ns >= FLUSH_NS) {
			r->last_flush_ns = now;
			each_second(r, now);
		}
		now = r->end_ns ? r->end_ns : now;
		put_marks(r, now);
		progress_show(r, now);
		if (b->barrier > r->boundary.barrier)
			reach(r, b, now);
		piece_next(r, now);
		aggregator_moves(r);
		queue_done(r->queue, b);
		batch_free(b);
	}
	last_look(r);
	put_marks(r, r->end_ns);
	release_culled(r, UINT64_MAX);
	each_second(r, r->end_ns);
	progress_show(r, r->end_ns);
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	pthread_cond_broadcast(&r->flushed);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}
