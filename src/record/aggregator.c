/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The aggregator thread: takes batches from the queue, sorts their records and processes them
 * (events.c), and writes what is due between two batches. */
#include "lib/privileges.h"
#include "record/internal.h"

#define FLUSH_NS 1000000000ull
/* Live table entries are prefetched in bursts: this many cache misses proceed in parallel, more
 * would wait for each other. */
#define BURST 4u
#define MOVES 1024u /* events between two calls of aggregator_moves() */
#define AHEAD 8u    /* distance from the current event to the first of a burst */

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

	r->process = event_process;
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
