/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include "model/history/state.h"

#define AHEAD	  16u
#define ADDR_MASK ((1ull << 48) - 1)

/* Where tellings go. */
struct teller {
	struct history *h;
	struct batch *b;
	uint32_t event; /* the index of the current one */
};

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

/* ------------------------------------------------------------------ telling -- */

static struct telling *tell(const struct teller *t, const struct model_block *b, enum told what)
{
	struct telling *told = &t->b->telling[t->b->tellings++];

	*told = (struct telling){.block = *b, .event = t->event, .what = (uint8_t)what};
	return told;
}

static int tell_end(const struct teller *t, const struct model_block *b, bool begins_chain,
		    const struct mp_event *ev, enum block_end how)
{
	struct history *h = t->h;
	struct telling *told;

	if (!h->sink.ended && !b->chain)
		return 0;
	told = tell(t, b, TOLD_ENDED);
	told->how = (uint8_t)how;
	told->begins_chain = begins_chain;
	if (b->chain && !history_continues(ev, how) && vec_push(&h->unused_chains, b->chain))
		return -ENOMEM;
	return 0;
}

static bool is_dropped(const struct history *h, const struct model_block *b)
{
	return h->only.drops && !h->only.has(h->only.ctx, b);
}

static void tell_block(const struct teller *t, const struct model_block *b, enum told what)
{
	const struct history_sink *s = &t->h->sink;

	if (b->chain || (what == TOLD_ALLOCATED ? s->allocated : s->faulted))
		tell(t, b, what);
}

/* ------------------------------------------------------------------ events -- */

static int add_live(const struct teller *t, const struct model_block *b, const struct mp_event *ev)
{
	struct model_block lost;

	if (live_blocks_put(&t->h->space[b->process].live, b, &lost))
		return -ENOMEM;
	if (!lost.addr)
		return 0;
	t->h->counts.mismatches++;
	return tell_end(t, &lost, false, ev, BLOCK_LOST);
}

/* Ends a block that is live at the address of @b, which is not followed itself; nor is its chain. */
static int drop_block(const struct teller *t, const struct model_block *b,
		      const struct mp_event *ev)
{
	struct model_block lost;

	if (b->chain && vec_push(&t->h->unused_chains, b->chain))
		return -ENOMEM;
	if (!live_blocks_take(&t->h->space[b->process].live, b->addr, &lost))
		return 0;
	return tell_end(t, &lost, false, ev, BLOCK_LOST);
}

static bool remove_live(const struct teller *t, const struct mp_event *ev, struct model_block *b)
{
	return live_blocks_take(&t->h->space[process_of(t->h, ev)].live, ev->addr & ADDR_MASK, b);
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

static int allocated(const struct teller *t, const struct mp_event *ev, struct per_thread *th,
		     uint32_t chain)
{
	struct model_block b = block_of(t->h, ev);
	bool dropped;
	int ret;

	b.chain = chain;
	t->h->allocations++;
	dropped = is_dropped(t->h, &b);
	ret = dropped ? drop_block(t, &b, ev) : add_live(t, &b, ev);
	th->last_alloc = ev->flags & EV_F_CARRIED ? 0 : b.addr;
	th->block_is_last = false;
	if (!ret && !dropped)
		tell_block(t, &b, TOLD_ALLOCATED);
	return ret;
}

/* When the page is released is not recorded, so it is never live. */
static void faulted(const struct teller *t, const struct mp_event *ev)
{
	struct model_block page = block_of(t->h, ev);

	t->h->allocations++;
	if (!is_dropped(t->h, &page))
		tell_block(t, &page, TOLD_FAULTED);
}

/* A thread has one block at an address that can be its latest one: the newest. */
static bool is_last(const struct per_thread *th, const struct model_block *b)
{
	return th->last_alloc == b->addr && th->tid == b->tid;
}

static int freed(const struct teller *t, const struct mp_event *ev, struct per_thread *th,
		 const struct model_block *b, bool last, bool begins_chain)
{
	bool temporary = last && !(ev->flags & EV_F_NOT_TEMPORARY);

	if (temporary)
		th->last_alloc = 0;
	return tell_end(t, b, begins_chain, ev, temporary ? BLOCK_TEMPORARY : BLOCK_FREED);
}

static int on_free(const struct teller *t, const struct mp_event *ev, struct per_thread *th)
{
	struct model_block b;

	if (remove_live(t, ev, &b))
		return freed(t, ev, th, &b, is_last(th, &b), false);
	if (ev->flags & EV_F_OWN_FREE)
		t->h->counts.housekeeping_frees++;
	else
		t->h->counts.foreign_frees++;
	return 0;
}

static int on_realloc_begin(const struct teller *t, const struct mp_event *ev,
			    struct per_thread *th)
{
	int ret = 0;

	if (th->in_realloc && th->known) /* the event of its end was lost */
		ret = freed(t, ev, th, &th->block, th->block_is_last, false);
	th->in_realloc = true;
	th->known = remove_live(t, ev, &th->block);
	th->block_is_last = th->known && is_last(th, &th->block);
	t->h->counts.foreign_reallocs += !th->known;
	return ret;
}

static int on_failed_realloc(const struct teller *t, const struct mp_event *ev,
			     struct per_thread *th)
{
	t->h->counts.failed_reallocs++;
	if (!th->known)
		return 0;
	if (is_last(th, &th->block) && !th->block_is_last)
		th->last_alloc = 0; /* that one is at the same address */
	return add_live(t, &th->block, ev);
}

/* Return: the number of a chain that no block has. */
static uint32_t new_chain(struct history *h)
{
	if (h->unused_chains.n)
		return h->unused_chains.at[--h->unused_chains.n];
	return ++h->chains_made;
}

static int on_realloc_end(const struct teller *t, const struct mp_event *ev, struct per_thread *th)
{
	bool begins_chain = false;
	int ret = 0;

	if (!th->in_realloc)
		return 0;
	th->in_realloc = false;
	if (!ev->addr && !(ev->flags & EV_F_FREED))
		return on_failed_realloc(t, ev, th);
	if (th->known && ev->addr && !th->block.chain) {
		th->block.chain = new_chain(t->h);
		begins_chain = true;
	}
	if (th->known)
		ret = freed(t, ev, th, &th->block, th->block_is_last, begins_chain);
	if (ev->addr && !ret)
		ret = allocated(t, ev, th, th->known ? th->block.chain : 0);
	return ret;
}

static int apply(const struct teller *t, const struct mp_event *ev)
{
	struct per_thread *th = thread_state(&t->h->space[process_of(t->h, ev)], ev->tid);

	if (!th)
		return -ENOMEM;
	switch (ev->kind) {
	case EV_ALLOC:
		return allocated(t, ev, th, 0);
	case EV_FREE:
		return on_free(t, ev, th);
	case EV_REALLOC_BEGIN:
		return on_realloc_begin(t, ev, th);
	case EV_REALLOC_END:
		return on_realloc_end(t, ev, th);
	case EV_FAULT:
		faulted(t, ev);
		return 0;
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ batches -- */

/* Prefetches what events from @from on need: many at once, since the processor can wait for many at
 * a time. */
static void look_ahead(const struct history *h, const struct batch *b, uint32_t from)
{
	for (uint32_t i = from; i < from + AHEAD && i < b->events; i++) {
		const struct mp_event *ev = &b->event[i];

		if (ev->kind <= EV_REALLOC_END)
			live_blocks_prefetch(&h->space[process_of(h, ev)].live,
					     ev->addr & ADDR_MASK);
	}
}

/* Ends the reading before event @n of @b.  @items: those that come right before that event count. */
static void end_at(struct batch *b, uint32_t n, bool items)
{
	b->last = true;
	b->events = n;
	while (b->items &&
	       (b->item[b->items - 1].at > n || (!items && b->item[b->items - 1].at == n)))
		b->items--;
}

void history_apply(struct history *h, struct batch *b)
{
	struct teller t = {.h = h, .b = b};

	look_ahead(h, b, 0);
	for (; t.event < b->events; t.event++) {
		const struct mp_event *ev = &b->event[t.event];

		if (t.event % AHEAD == 0)
			look_ahead(h, b, t.event + AHEAD);
		if (h->until.time_ns && ev->time_ns > h->until.time_ns) {
			end_at(b, t.event, true);
			return;
		}
		h->counts.events++;
		h->apply_ret = apply(&t, ev);
		if (h->apply_ret || h->counts.events == h->until.events) {
			end_at(b, t.event + 1, false);
			return;
		}
	}
}
