/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/events.h"

#include <sys/mman.h>
#include "record/aggregator.h"
#include "record/blocks.h"
#include "record/losses.h"
#include "record/order/overtaken.h"
#include "record/pieces/periodic.h"
#include "record/stacks/stack_ids.h"

static void note_error(struct aggregator *a, int ret)
{
	if (ret)
		a->now.error = ret;
}

static inline void fill_misc(struct mp_event *ev, uint16_t misc)
{
	uint32_t slack = misc >> MPR_SLACK_SHIFT;

	ev->usable = slack == MPR_SLACK_UNKNOWN ? ev->size : ev->size + slack;
	ev->flags |=
	    (misc & MPR_F_NON_MAIN ? EV_F_NON_MAIN : 0) | (misc & MPR_F_MMAPPED ? EV_F_MMAPPED : 0);
}

/* The name of a hook must be in the file before its first event. */
static inline void name_hook(struct aggregator *a, uint16_t hook)
{
	if (hook >= a->hooks_written)
		put_hooks_and_modules(a);
}

static inline void split(struct aggregator *a, struct mp_event *ev, uint64_t addr_hook)
{
	ev->addr = addr_hook & MPR_ADDR_MASK;
	ev->hook = mpr_hook(addr_hook);
	name_hook(a, ev->hook);
}

static void count_stack(struct aggregator *a, uint32_t id)
{
	a->losses.stacks_total++;
	a->losses.stacks_complete += id && a->stacks.at[id].flags & SS_STACK_COMPLETE;
}

/* Counts an allocation that is left out.  If its address was live, that block must have been freed:
 * the event becomes a free without a hook.  Return: whether there is such an event to write. */
static bool leave_out(struct aggregator *a, struct mp_event *ev)
{
	struct known_block old;

	a->losses.left_out_allocs++;
	overtaken_free(a, ev->addr);
	if (!block_take(a, ev->addr, &old))
		return false;
	if (old.held != CULL_NONE)
		cull_forget(a->cull, old.held);
	block_replaced(a, &old.of);
	ev->kind = EV_FREE;
	ev->hook = UINT16_MAX;
	return true;
}

/* Return: whether no allocator can have returned this block, so that the record is false. */
static bool impossible(struct aggregator *a, const struct mp_event *ev)
{
	if (ev->addr && ev->size <= LIVE_MAX_SIZE)
		return false;
	a->losses.lost_other++;
	return true;
}

static void count_alloc(struct aggregator *a, const struct mp_event *ev)
{
	struct recorder_progress *now = &a->now;

	now->allocs += 1ull << ev->weight;
	now->allocated_bytes += ev->size << ev->weight;
	if (!ev->weight)
		return;
	a->represented += (1ull << ev->weight) - 1;
	a->represented_bytes += (ev->size << ev->weight) - ev->size;
	if (!now->thinning.most)
		now->thinning.first_ns = ev->time_ns;
	now->thinning.last_ns = ev->time_ns;
	if (now->thinning.most < ev->weight)
		now->thinning.most = ev->weight;
}

/* Counts an event that was added to culling, with the result @ret.  Return: false, so that it is not
 * put once more. */
static bool is_held(struct aggregator *a, int ret)
{
	note_error(a, ret);
	a->now.events++;
	return false;
}

/* Ends block @b.  Return: whether the event is still to be put. */
static bool end_block(struct aggregator *a, const struct known_block *b, const struct mp_event *ev)
{
	block_ended(a, &b->of);
	return b->held == CULL_NONE || is_held(a, cull_end(a->cull, b->held, ev));
}

/* Counts the allocation @ev for views.  To be called after its block is in the live table: what was
 * there before has ended then. */
static void tally(struct aggregator *a, uint32_t slot, const struct mp_event *ev)
{
	struct live_block b = {ev->addr, ev->size, ev->stack, ev->weight};

	note_error(a,
		   tallies_allocated(&a->tallies, &(struct tallied){.ring = slot,
								    .tid = ev->tid,
								    .stack = ev->stack,
								    .addr = ev->addr,
								    .of = block_estimate(a, &b)}));
}

/* Counts the temporary block @b of the thread that owns @slot for views.  In a sample it is not known which
 * are temporary. */
static void tally_temporary(struct aggregator *a, uint32_t slot, const struct live_block *b)
{
	if (!a->config->info.sample_interval)
		tallies_temporary(&a->tallies, slot, b->stack, 1ull << b->weight,
				  b->size << b->weight);
}

/* Counts the end of block @b by @ev for views.  @slot: of the thread that ends it. */
static void tally_end(struct aggregator *a, uint32_t slot, const struct live_block *b,
		      const struct mp_event *ev)
{
	if (tallies_ended(&a->tallies, slot, ev->addr) && !(ev->flags & EV_F_NOT_TEMPORARY))
		tally_temporary(a, slot, b);
}

static bool decode_alloc(struct aggregator *a, const struct pending *p, struct mp_event *ev)
{
	const struct mpr_header *h = (const void *)p->rec;
	const struct mpr_alloc *small = (const void *)h;
	const struct mpr_alloc_big *big = (const void *)h;
	struct slot_state *st = &a->slot[p->slot];

	ev->kind = EV_ALLOC;
	split(a, ev, small->addr_hook);
	if (aggregator_selects(a) && select_leaves_out(a, st))
		return leave_out(a, ev);
	ev->size = mpr_type(h) == MPR_ALLOC ? small->size : big->size;
	if (impossible(a, ev))
		return false;
	ev->weight = mpr_weight(small->addr_hook, ev->size);
	ev->stack = stack_id(a, p->slot, mpr_type(h) == MPR_ALLOC ? small->stack : big->stack);
	fill_misc(ev, h->misc);
	count_stack(a, ev->stack);
	count_alloc(a, ev);
	if (!(p->what & ORDER_SHORT) || !block_born_short(a, st, p->what >> ORDER_NUMBER, ev)) {
		block_born(a, ev, NULL);
		tally(a, p->slot, ev);
		return !a->cull || is_held(a, 0);
	}
	tally(a, p->slot, ev);
	return !a->cull || is_held(a, cull_begin_short(a->cull, ev->tid, ev->addr));
}

/* Fills the zeroed @born with the allocation of @r.  Not returned by value: reading a whole that was just
 * written in parts stalls the processor. */
static inline void small_alloc(struct aggregator *a, const struct mpr_alloc *r, uint32_t tid,
			       struct mp_event *born)
{
	born->kind = EV_ALLOC;
	born->time_ns = clock_ns(&a->clock, r->time);
	born->tid = tid;
	born->size = r->size;
	born->weight = mpr_weight(r->addr_hook, r->size);
	split(a, born, r->addr_hook);
	fill_misc(born, r->h.misc);
}

/* Culls the block of record @r, which @by ended. */
static void cull_short(struct aggregator *a, const struct mpr_alloc *r, uint32_t stack,
		       const struct mp_event *by)
{
	struct mp_event born = {0};

	small_alloc(a, r, by->tid, &born);
	born.stack = stack;
	(void)is_held(a, cull_end_short(a->cull, &born, by));
}

/* The end of a block as its allocation's record shows it. */
static bool decode_end(struct aggregator *a, const struct pending *p, struct mp_event *ev)
{
	const struct mpr_alloc *r = (const void *)p->rec; /* or struct mpr_free */
	struct known_block b;
	uint32_t stack;

	ev->kind = EV_FREE;
	ev->flags = EV_F_ABOUT;
	split(a, ev, r->addr_hook);
	if (mpr_type(&r->h) == MPR_ALLOC) {
		ev->hook = mpr_ended_hook(&r->h);
		name_hook(a, ev->hook);
	}
	if (p->what & ORDER_SHORT &&
	    block_end_short(a, &a->slot[p->slot], p->what >> ORDER_NUMBER, r, &stack)) {
		tally_end(a, p->slot,
			  &(struct live_block){ev->addr, r->size, stack,
					       mpr_weight(r->addr_hook, r->size)},
			  ev);
		if (a->cull)
			cull_short(a, r, stack, ev);
		return !a->cull;
	}
	if (!block_gone(a, ev->addr, false, &b))
		return !aggregator_selects(a);
	tally_end(a, p->slot, &b.of, ev);
	return end_block(a, &b, ev);
}

bool event_postpone(struct aggregator *a, size_t i)
{
	const struct pending *e = &a->order->events[i];
	uint64_t addr = order_ended(e);
	struct live_block b;

	return (order_is_end(e) || order_can_end(a->order, addr, e->slot)) &&
	       order_postpone(a->order, i, live_find(a->live, addr, &b));
}

static bool decode_free(struct aggregator *a, uint32_t slot, const struct mpr_free *f,
			struct mp_event *ev)
{
	bool own_free = f->h.misc & MPR_F_OWN_FREE;
	struct known_block b;

	ev->kind = EV_FREE;
	split(a, ev, f->addr_hook);
	ev->flags =
	    (own_free ? EV_F_OWN_FREE : 0) | (f->h.misc & MPR_F_SKIPPED ? EV_F_NOT_TEMPORARY : 0);
	if (mpr_type(&f->h) == MPR_FREE_STACK)
		ev->stack = stack_id(a, slot, ((const struct mpr_free_stack *)f)->stack);
	if (ev->stack)
		ev->flags |= EV_F_STACK;
	/* Written now, it would be the free of the new block */
	if (own_free && overtaken_by_alloc(a, ev->addr))
		return false;
	if (!block_gone(a, ev->addr, own_free, &b))
		return !aggregator_selects(a);
	tally_end(a, slot, &b.of, ev);
	return end_block(a, &b, ev);
}

static bool decode_realloc_begin(struct aggregator *a, uint32_t slot, const struct mpr_free *f,
				 struct mp_event *ev)
{
	struct slot_state *st = &a->slot[slot];
	struct known_block b;

	ev->kind = EV_REALLOC_BEGIN;
	split(a, ev, f->addr_hook);
	drop_realloc(a, st);
	st->in_realloc = true;
	st->realloc_held.node = CULL_NONE;
	st->realloc_known = block_end(a, ev->addr, &b);
	if (st->realloc_known) {
		st->realloc_block = b.of;
		st->realloc_origin = b.origin;
		st->realloc_temporary = tallies_ended(&a->tallies, slot, ev->addr);
		return b.held == CULL_NONE ||
		       is_held(a, cull_resize(a->cull, b.held, ev, &st->realloc_held));
	}
	if (aggregator_selects(a) && select_leaves_out(a, st)) {
		a->losses.left_out_allocs++;
		st->in_realloc = false;
		return false;
	}
	a->losses.foreign_reallocs++;
	return true;
}

static bool decode_realloc_end(struct aggregator *a, uint32_t slot, const struct mpr_realloc *e,
			       struct mp_event *ev)
{
	struct slot_state *st = &a->slot[slot];
	/* block_born() can process later events of this thread before it uses it. */
	struct cull_realloc begun = st->realloc_held;
	struct live_block old;

	ev->kind = EV_REALLOC_END;
	split(a, ev, e->addr_hook);
	ev->old_addr = e->old_addr & MPR_ADDR_MASK;
	ev->size = ev->usable = e->size;
	if (e->h.misc & MPR_F_SKIPPED)
		ev->flags = EV_F_NOT_TEMPORARY;
	if (!st->in_realloc)
		return false; /* its beginning was lost and counted, or left out */
	if (!ev->addr && !e->freed) {
		st->in_realloc = false;
		if (st->realloc_known)
			block_put(a, &st->realloc_block, &st->realloc_origin, &old);
		return true;
	}
	if (st->realloc_known && st->realloc_temporary && !(ev->flags & EV_F_NOT_TEMPORARY))
		tally_temporary(a, slot, &st->realloc_block);
	drop_realloc(a, st);
	if (e->freed)
		ev->flags |= EV_F_FREED;
	if (ev->addr && impossible(a, ev))
		return false;
	if (ev->addr) {
		ev->stack = stack_id(a, slot, e->stack);
		fill_misc(ev, e->h.misc);
		count_stack(a, ev->stack);
		ev->weight = mpr_weight(e->addr_hook, ev->size);
		count_alloc(a, ev);
		block_born(a, ev, &begun);
		tally(a, slot, ev);
	}
	return !a->cull || !ev->addr || is_held(a, 0);
}

/* Counts memory that the program maps for itself: anonymous and writable, so not address space
 * that is only reserved. */
static void count_map(struct aggregator *a, const struct mp_event *ev)
{
	if (ev->kind != EV_MAP || ev->flags & EV_F_INNER || !(ev->mapflags & MAP_ANONYMOUS) ||
	    !(ev->prot & PROT_WRITE))
		return;
	note_error(a, tallies_map(&a->tallies, ev->stack, ev->size));
	a->now.mapped_bytes += ev->size;
	a->now.mappings++;
}

static bool decode_map(struct aggregator *a, uint32_t slot, const struct mpr_map *m,
		       struct mp_event *ev)
{
	static const uint8_t kind[] = {
	    [MPR_MAP - MPR_MAP] = EV_MAP,
	    [MPR_UNMAP - MPR_MAP] = EV_UNMAP,
	    [MPR_UNMAP_FAILED - MPR_MAP] = EV_UNMAP_FAILED,
	    [MPR_REMAP_BEGIN - MPR_MAP] = EV_REMAP_BEGIN,
	    [MPR_REMAP_END - MPR_MAP] = EV_REMAP_END,
	};

	if (aggregator_selects(a) && select_leaves_out(a, &a->slot[slot]))
		return false;
	ev->kind = kind[mpr_type(&m->h) - MPR_MAP];
	split(a, ev, m->addr_hook);
	ev->size = ev->usable = m->length;
	ev->old_addr = m->old_addr & MPR_ADDR_MASK;
	ev->prot = m->prot;
	ev->mapflags = m->flags;
	ev->fd = m->fd;
	ev->stack = stack_id(a, slot, m->stack);
	if (m->h.misc & MPR_F_INNER || (ev->stack && a->stacks.at[ev->stack].inner))
		ev->flags |= EV_F_INNER;
	count_map(a, ev);
	return true;
}

/* Pages count as live for ever, since their removal is not observed. */
static bool decode_fault(struct aggregator *a, uint32_t slot, const struct mpr_fault *f,
			 struct mp_event *ev)
{
	struct stack_level *s;

	if (aggregator_selects(a) && select_leaves_out(a, &a->slot[slot])) {
		a->losses.left_out_allocs++;
		return false;
	}
	ev->kind = EV_FAULT;
	ev->hook = UINT16_MAX;
	ev->addr = f->addr;
	ev->size = ev->usable = f->page;
	ev->flags = (f->h.misc & MPR_F_MAJOR ? EV_F_MAJOR : 0) |
		    (f->h.misc & MPR_F_NO_SIZE ? EV_F_NO_SIZE : 0);
	ev->stack = stack_id(a, slot, f->stack);
	count_stack(a, ev->stack);
	s = levels_stack(&a->levels, ev->stack);
	if (s) {
		s->live_bytes += f->page;
		s->live_blocks++;
	}
	a->now.allocs++;
	a->now.allocated_bytes += f->page;
	return true;
}

bool event_pair(struct aggregator *a, const struct pending *p, const struct pending *end)
{
	const struct mpr_alloc *r = (const void *)p->rec;
	struct slot_state *st = &a->slot[p->slot];
	struct mp_event born = {0}, by = {0};

	if (!a->cull || end->rec != p->rec || end->slot != p->slot ||
	    end->what != (ORDER_END | p->what) || !(p->what & ORDER_SHORT) || aggregator_selects(a))
		return false;
	small_alloc(a, r, st->tid, &born);
	if (!born.addr)
		return false;
	a->last_ns = born.time_ns;
	note_error(a, levels_time(&a->levels, born.time_ns, a->file));
	born.stack = stack_id(a, p->slot, r->stack);
	if (!block_pair(a, st, &born))
		return false;
	losses_see(&a->losses, MPR_ALLOC);
	losses_see(&a->losses, MPR_FREE);
	count_stack(a, born.stack);
	count_alloc(a, &born);
	note_error(a, tallies_pair(&a->tallies,
				   &(struct tallied){.ring = p->slot,
						     .tid = st->tid,
						     .stack = born.stack,
						     .of = {.blocks = 1ull << born.weight,
							    .bytes = born.size << born.weight}}));
	by.kind = EV_FREE;
	by.time_ns = clock_ns(&a->clock, end->time);
	by.tid = st->tid;
	by.hook = mpr_ended_hook(&r->h);
	note_error(a, cull_pair(a->cull, &born, &by));
	a->now.events += 2;
	return true;
}

void event_process(struct aggregator *a, const struct pending *p, uint64_t ns)
{
	const struct mpr_header *h = (const void *)p->rec;
	uint32_t type = p->what & ORDER_END ? MPR_FREE : mpr_type(h);
	struct mp_event ev = {.time_ns = ns, .tid = a->slot[p->slot].tid, .fd = -1};
	const struct mpr_mallopt *opt;
	bool put = false;

	a->last_ns = ns;
	if (a->cull)
		note_error(a, levels_time(&a->levels, ns, a->file));
	a->at_slot = p->slot;
	losses_see(&a->losses, type);
	switch (type) {
	case MPR_ALLOC:
	case MPR_ALLOC_BIG:
		put = decode_alloc(a, p, &ev);
		break;
	case MPR_FREE:
	case MPR_FREE_STACK:
		put = p->what & ORDER_END ? decode_end(a, p, &ev)
					  : decode_free(a, p->slot, (const void *)h, &ev);
		break;
	case MPR_REALLOC_BEGIN:
		put = decode_realloc_begin(a, p->slot, (const void *)h, &ev);
		break;
	case MPR_REALLOC_END:
		put = decode_realloc_end(a, p->slot, (const void *)h, &ev);
		break;
	case MPR_MALLOPT:
		opt = (const void *)h;
		ev.kind = EV_MALLOPT;
		ev.size = (uint64_t)(int64_t)opt->param;
		ev.usable = (uint64_t)(int64_t)opt->value;
		ev.fd = opt->result;
		ev.stack = stack_id(a, p->slot, opt->stack);
		put = true;
		break;
	case MPR_FAULT:
		put = decode_fault(a, p->slot, (const void *)h, &ev);
		break;
	case MPR_RAW_STACK:
		stack_take_raw(a, p->slot, (const void *)h);
		return;
	case MPR_THREAD:
		drop_realloc(a, &a->slot[p->slot]);
		a->slot[p->slot].tid = ((const struct mpr_thread *)h)->tid;
		return;
	default:
		put = decode_map(a, p->slot, (const void *)h, &ev);
	}
	if (put) {
		a->now.events++;
		note_error(a, a->cull ? cull_put(a->cull, &ev) : mpf_put_event(a->file, &ev));
	}
}
