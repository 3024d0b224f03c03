/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/losses.h"

#include "record/aggregator.h"

static void add_queue(struct mp_losses *l, const struct queue_stats *q)
{
	const struct queue_drop *d = &q->dropped;

	l->queue_batches += d->batches;
	for (int k = 0; k < MPR_LOST_KINDS; k++)
		l->queue_events += d->events[k];
	l->queue_alloc += d->events[MPR_LOST_ALLOC];
	l->queue_free += d->events[MPR_LOST_FREE];
	l->queue_realloc += d->events[MPR_LOST_REALLOC];
	l->queue_map += d->events[MPR_LOST_MAP];
	l->queue_other += d->events[MPR_LOST_OTHER];
	l->queue_requested += d->requested;
	l->queue_bytes += d->bytes;
	l->queue_peak_bytes = q->peak_bytes;
	l->queue_ceiling = q->ceiling;
}

/* What culling has not written yet would be lost if the recorder died, so it does not count as
 * seen. */
static void leave_waiting(struct mp_losses *l, const struct cull *c)
{
	struct cull_waiting w = cull_waiting(c);

	l->seen_alloc -= w.allocations;
	l->seen_free -= w.frees;
	l->seen_realloc -= w.reallocs;
	l->seen_map -= w.maps;
}

struct mp_losses losses_now(const struct aggregator *a)
{
	struct mp_losses l = a->losses;
	struct queue_stats q = queue_stats(a->shared->queue);

	for (uint32_t i = 0, n = __atomic_load_n(&a->shared->nactive, __ATOMIC_ACQUIRE); i < n;
	     i++) {
		const struct ss_thread *t = slot_at(a->layout, a->shared->active[i]);

		l.lost_alloc += t->lost[MPR_LOST_ALLOC];
		l.lost_free += t->lost[MPR_LOST_FREE];
		l.lost_realloc += t->lost[MPR_LOST_REALLOC];
		l.lost_map += t->lost[MPR_LOST_MAP];
		l.lost_other += t->lost[MPR_LOST_OTHER];
		l.lost_bytes += t->lost_bytes;
		for (int k = 0; k < MPR_LOST_KINDS; k++)
			l.stale += t->stale[k];
		l.stale_frees += t->stale[MPR_LOST_FREE] + t->stale[MPR_LOST_REALLOC];
		l.stacks_cached += t->stacks_cached;
		l.thinned += t->thinned_out;
		l.thinned_bytes += t->thinned_bytes;
	}
	/* The hooks that pass calls through do not count them. */
	if (a->layout->overhead_ppm) {
		l.thinned = a->represented;
		l.thinned_bytes = a->represented_bytes;
	}
	l.lost_no_slot = a->config->block->lost_no_slot;
	l.no_slot_frees = a->config->block->lost_no_slot_free;
	l.stacks_full = a->config->block->stacks_full;
	l.missed_new = a->config->block->missed_new;
	l.stacks_checked = a->config->block->stacks_checked;
	l.stacks_differ = a->config->block->stacks_differ;
	add_queue(&l, &q);
	if (a->cull)
		leave_waiting(&l, a->cull);
	return l;
}

void losses_note(struct aggregator *a, uint64_t now)
{
	struct mp_losses l = losses_now(a);
	uint64_t lost = mp_losses_events(&l);

	if (lost > a->losses_seen) {
		if (!a->losses_seen)
			a->losses.first_loss_ns = a->losses_looked_ns;
		a->losses.last_loss_ns = now;
		a->losses_seen = lost;
	}
	a->losses_looked_ns = now;
}

void losses_show(const struct aggregator *a)
{
	struct ss_control *c = a->config->block;
	struct queue_stats q = queue_stats(a->shared->queue);

	c->queue.ceiling = q.ceiling;
	c->queue.bytes = q.bytes;
	c->queue.peak_bytes = q.peak_bytes;
	c->queue.dropped_batches = q.dropped.batches;
	c->queue.dropped_bytes = q.dropped.bytes;
	c->queue.dropped_events = a->losses.queue_events;
	for (int i = 0; i < MPR_LOST_KINDS; i++)
		c->queue.dropped_events += q.dropped.events[i];
}

void losses_see(struct mp_losses *l, uint32_t type)
{
	switch (mpr_kind(type)) {
	case MPR_LOST_ALLOC:
		l->seen_alloc++;
		break;
	case MPR_LOST_FREE:
		l->seen_free++;
		break;
	case MPR_LOST_REALLOC:
		l->seen_realloc++;
		break;
	case MPR_LOST_MAP:
		l->seen_map++;
		break;
	default:
		break;
	}
}
