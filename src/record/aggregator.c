/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/aggregator.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/privileges.h"
#include "record/blocks.h"
#include "record/stacks/code_look.h"
#include "record/pieces/carry_in.h"
#include "record/counters.h"
#include "record/events.h"
#include "record/live_file.h"
#include "record/look_at_target.h"
#include "record/losses.h"
#include "record/pieces/periodic.h"
#include "record/view.h"

/* Percent: 24 to 26 bytes per live block; 80 percent would cost a third of the speed */
#define LIVE_LOAD 68
#define FLUSH_NS  1000000000ull
/* Live table entries are prefetched in bursts: this many cache misses proceed in parallel, more
 * would wait for each other. */
#define BURST 4u
#define OFTEN 1024u /* events between two calls of aggregator_moves() and limit_sums() */
#define AHEAD 8u    /* distance from the current event to the first of a burst */

int aggregator_init(struct aggregator *a, const struct recorder_config *config,
		    const struct block_layout *layout, struct recorder_shared *shared)
{
	a->config = config;
	a->layout = layout;
	a->shared = shared;
	a->process = event_process;
	a->live = live_new(LIVE_LOAD);
	a->stack_of_word = live_new(STACKS_LOAD);
	a->slot = calloc(layout->nslots, sizeof(*a->slot));
	a->order = &a->sorter.slot[0].order;
	if (!a->live || !a->stack_of_word || !a->slot)
		return -ENOMEM;
	return stacks_init(&a->stacks) ? -ENOMEM : tallies_init(&a->tallies, layout->nslots);
}

void aggregator_free(struct aggregator *a)
{
	piece_thread_stop(&a->piece.closer);
	kept_pieces_free(&a->piece.closer.kept);
	live_free(a->live);
	live_free(a->stack_of_word);
	for (uint32_t i = 0; a->slot && i < a->layout->nslots; i++)
		free(a->slot[i].short_stack);
	free(a->slot);
	cull_free(a->cull);
	levels_free(&a->levels);
	tallies_free(&a->tallies);
	origins_free(a->origins);
	code_ranges_free(&a->code);
	stacks_free(&a->stacks);
	sorter_stop(&a->sorter);
}

/* ---------------------------------------------------------------- a batch -- */

static uint64_t address_of(const struct pending *e)
{
	return ((const struct mpr_free *)e->rec)->addr_hook & MPR_ADDR_MASK;
}

/* Prefetches what some events after @i will need, and then what was found there for those before them. */
static void prefetch(const struct aggregator *a, size_t i)
{
	const struct pending *e = a->order->events;
	size_t n = a->order->n, middle = i + AHEAD < n ? i + AHEAD : n,
	       end = middle + BURST < n ? middle + BURST : n;
	bool writes = !a->cull || cull_is_suspended(a->cull);

	/* Short blocks are at few addresses, which are in the cache. */
	for (size_t k = middle; k < end; k++) {
		live_prefetch(a->live, address_of(&e[k]));
		if (writes && !(e[k].what & ORDER_SHORT))
			mpf_prefetch(a->file, address_of(&e[k]));
	}
	for (size_t k = i + AHEAD - BURST; k < middle; k++) {
		if (writes && !(e[k].what & ORDER_SHORT))
			mpf_prefetch_block(a->file, address_of(&e[k]));
		if (mpr_kind(mpr_type((const void *)e[k].rec)) != MPR_LOST_ALLOC)
			block_prefetch(a, address_of(&e[k]));
	}
}

static void run_batch(struct aggregator *a, struct sorted *sorted)
{
	const struct batch *b = sorted->batch;

	a->order = &sorted->order;
	for (uint32_t k = 0; k < b->nsegments; k++) {
		struct slot_state *st = &a->slot[b->segment[k].slot];

		if (!st->tid || b->after_loss)
			st->tid = b->segment[k].tid;
	}
	a->losses.lost_other += sorted->discarded;
	pthread_mutex_lock(&a->shared->clock_lock);
	a->clock = a->shared->clock;
	pthread_mutex_unlock(&a->shared->clock_lock);
	a->tick_rate = (uint64_t)(1000 / a->clock.ns_per_tick) + 1;
	code_look(a);
	for (size_t i = 0; i < a->order->complete; i++) {
		const struct pending *e = &a->order->events[i];

		if (!(i % BURST))
			prefetch(a, i);
		if (!(i % OFTEN)) {
			aggregator_moves(a);
			limit_sums(a);
		}
		a->at = i;
		if (e->slot == ORDER_TAKEN)
			continue;
		if (a->code.due && e->time >= a->code.due)
			code_reach(a, e->time);
		if (i + 1 < a->order->complete && event_pair(a, e, e + 1))
			i++;
		else if (e->what & ORDER_END && event_postpone(a, i))
			i--; /* another event is there now */
		else
			event_process(a, e, clock_ns(&a->clock, e->time));
	}
	if (a->code.due && b->until != UINT64_MAX && b->until >= a->code.due)
		code_reach(a, b->until);
	if (b->until != UINT64_MAX)
		release_culled(a, clock_ns(&a->clock, b->until));
}

/* ---------------------------------------------------------------- the thread -- */

/* Completes a flush: writes the file up to the barrier and wakes the waiting threads. */
static void reach(struct aggregator *a, const struct batch *b, uint64_t now)
{
	struct mp_losses l;
	struct recorder_boundary at = {.barrier = b->barrier,
				       .events = a->now.events - a->piece.before.events};

	at.time_ns = b->until == UINT64_MAX ? now : clock_ns(&a->shared->clock, b->until);
	/* Otherwise the last boundary, which is the end, would be before this one. */
	if (a->end_ns && at.time_ns > a->end_ns)
		at.time_ns = a->end_ns;
	put_marks(a, at.time_ns);
	end_slice(a, at.time_ns);
	at.time_ns -= at.time_ns < a->piece.base_ns ? at.time_ns : a->piece.base_ns;
	l = losses_now(a); /* includes the events just released */
	mpf_put_losses(a->file, &l);
	a->now.error = mpf_flush(a->file);
	at.file_bytes = mpf_bytes(a->file);
	if (__atomic_exchange_n(&a->shared->save_wanted, false, __ATOMIC_ACQUIRE))
		live_file_write(a, at.time_ns);
	pthread_mutex_lock(&a->shared->lock);
	a->shared->boundary = at;
	pthread_cond_broadcast(&a->shared->flushed);
	pthread_mutex_unlock(&a->shared->lock);
}

/* Reads the target's state for the last time: later changes are not part of the recording. */
static void last_look(struct aggregator *a)
{
	uint64_t now;

	if (a->end_ns)
		return;
	now = clock_ns(&a->shared->clock, clock_ticks());
	a->next_usage_ns = a->next_names_ns = 0;
	look_at_target(a, now);
	a->end_ns = now;
}

void *aggregator_run(void *arg)
{
	struct aggregator *a = arg;
	struct sorted *sorted;

	privileges_keep(PRIVILEGES_TARGET);
	piece_take_file(a, a->file);
	put_hooks_and_modules(a);
	if (a->config->carry)
		carry_in(a, a->config->carry);
	if (a->config->info.what == MP_PAGE_FAULTS) /* initial memory use */
		look_at_target(a, clock_ns(&a->shared->clock, clock_ticks()));
	sorter_start(&a->sorter, a->shared->queue, a->config->jobs >= JOBS_SORTING);
	while ((sorted = sorter_next(&a->sorter))) {
		const struct batch *b = sorted->batch;
		uint64_t now;

		run_batch(a, sorted);
		if (__atomic_load_n(&a->shared->let_go, __ATOMIC_ACQUIRE))
			last_look(a);
		now = clock_ns(&a->shared->clock, clock_ticks());
		if (now - a->last_flush_ns >= FLUSH_NS) {
			a->last_flush_ns = now;
			each_second(a, now);
		}
		now = a->end_ns ? a->end_ns : now;
		put_marks(a, now);
		counters_show(a, now);
		view_put(a, b->until == UINT64_MAX ? now : clock_ns(&a->shared->clock, b->until),
			 now);
		if (b->barrier > a->shared->boundary.barrier)
			reach(a, b, now);
		piece_next(a, now);
		aggregator_moves(a);
	}
	last_look(a);
	put_marks(a, a->end_ns);
	end_culling(a, a->end_ns);
	each_second(a, a->end_ns);
	counters_show(a, a->end_ns);
	pthread_mutex_lock(&a->shared->lock);
	a->shared->ended = true;
	pthread_cond_broadcast(&a->shared->flushed);
	pthread_mutex_unlock(&a->shared->lock);
	return NULL;
}
