/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/losses.h"

#include <stddef.h>
#include <string.h>
#include "model/model.h"

#define OF_HISTORY SIZE_MAX /* counted by model/history/history.c, not by the recorder */

static const struct {
	const char *name;
	size_t offset; /* in struct mp_losses */
} counter[] = {
    {"lost_allocations", offsetof(struct mp_losses, lost_alloc)},
    {"lost_bytes", offsetof(struct mp_losses, lost_bytes)},
    {"lost_frees", offsetof(struct mp_losses, lost_free)},
    {"lost_reallocs", offsetof(struct mp_losses, lost_realloc)},
    {"lost_maps", offsetof(struct mp_losses, lost_map)},
    {"lost_other", offsetof(struct mp_losses, lost_other)},
    {"lost_no_slot", offsetof(struct mp_losses, lost_no_slot)},
    {"stale", offsetof(struct mp_losses, stale)},
    {"queue_dropped_batches", offsetof(struct mp_losses, queue_batches)},
    {"queue_dropped_events", offsetof(struct mp_losses, queue_events)},
    {"queue_dropped_bytes", offsetof(struct mp_losses, queue_bytes)},
    {"queue_peak_bytes", offsetof(struct mp_losses, queue_peak_bytes)},
    {"queue_ceiling_bytes", offsetof(struct mp_losses, queue_ceiling)},
    {"queue_dropped_allocations", offsetof(struct mp_losses, queue_alloc)},
    {"queue_dropped_requested_bytes", offsetof(struct mp_losses, queue_requested)},
    {"queue_dropped_frees", offsetof(struct mp_losses, queue_free)},
    {"queue_dropped_reallocs", offsetof(struct mp_losses, queue_realloc)},
    {"queue_dropped_maps", offsetof(struct mp_losses, queue_map)},
    {"queue_dropped_other", offsetof(struct mp_losses, queue_other)},
    {"stale_frees", offsetof(struct mp_losses, stale_frees)},
    {"lost_no_slot_frees", offsetof(struct mp_losses, no_slot_frees)},
    {"seen_allocations", offsetof(struct mp_losses, seen_alloc)},
    {"seen_frees", offsetof(struct mp_losses, seen_free)},
    {"restart_allocations", offsetof(struct mp_losses, restart_alloc)},
    {"restart_frees", offsetof(struct mp_losses, restart_free)},
    {"restart_reallocs", offsetof(struct mp_losses, restart_realloc)},
    {"restart_maps", offsetof(struct mp_losses, restart_map)},
    {"first_loss_ns", offsetof(struct mp_losses, first_loss_ns)},
    {"last_loss_ns", offsetof(struct mp_losses, last_loss_ns)},
    {"stacks_full", offsetof(struct mp_losses, stacks_full)},
    {"missed_new", offsetof(struct mp_losses, missed_new)},
    {"mismatches", OF_HISTORY},
    {"left_out_allocations", offsetof(struct mp_losses, left_out_allocs)},
    {"left_out_frees", offsetof(struct mp_losses, left_out_frees)},
    {"stacks_total", offsetof(struct mp_losses, stacks_total)},
    {"stacks_complete", offsetof(struct mp_losses, stacks_complete)},
    {"stacks_cached", offsetof(struct mp_losses, stacks_cached)},
    {"stacks_checked", offsetof(struct mp_losses, stacks_checked)},
    {"stacks_differ", offsetof(struct mp_losses, stacks_differ)},
};

#define COUNTERS  (sizeof(counter) / sizeof(counter[0]))
#define OF_CHECKS 2 /* the last ones: only a checking build has them */

struct model_loss model_loss(const struct model *m, uint32_t i)
{
	size_t n = m->facts.losses.stacks_checked ? COUNTERS : COUNTERS - OF_CHECKS;
	struct model_loss l = {0};

	if (i >= n)
		return l;
	l.name = counter[i].name;
	if (counter[i].offset == OF_HISTORY)
		l.value = m->counts.mismatches;
	else
		memcpy(&l.value, (const char *)&m->facts.losses + counter[i].offset,
		       sizeof(l.value));
	return l;
}
