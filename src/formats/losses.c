/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/file.h"

uint64_t mp_losses_events(const struct mp_losses *l)
{
	return l->lost_alloc + l->lost_free + l->lost_realloc + l->lost_map + l->lost_other +
	       l->lost_no_slot + l->stale + l->queue_events + l->restart_alloc + l->restart_free +
	       l->restart_realloc + l->restart_map;
}

uint64_t mp_losses_frees(const struct mp_losses *l)
{
	return l->lost_free + l->lost_realloc + l->no_slot_frees + l->stale_frees + l->queue_free +
	       l->queue_realloc + l->restart_free + l->restart_realloc;
}

void mp_losses_begin_piece(struct mp_losses *l)
{
	l->foreign_frees = l->foreign_reallocs = l->housekeeping_frees = l->mismatches = 0;
	l->stacks_total = l->stacks_complete = 0;
	l->left_out_allocs = l->left_out_frees = 0;
}

/* Extends the time span of losses in @sum to cover that of @next. */
static void span(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns)
{
	uint64_t first = next->first_loss_ns + next_ns, last = next->last_loss_ns + next_ns;

	if (!next->last_loss_ns)
		return;
	if (!sum->last_loss_ns || first < sum->first_loss_ns)
		sum->first_loss_ns = first;
	if (last > sum->last_loss_ns)
		sum->last_loss_ns = last;
}

void mp_losses_continue(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns)
{
	struct mp_losses before = *sum;

	*sum = *next;
	sum->foreign_frees += before.foreign_frees;
	sum->foreign_reallocs += before.foreign_reallocs;
	sum->housekeeping_frees += before.housekeeping_frees;
	sum->mismatches += before.mismatches;
	sum->stacks_total += before.stacks_total;
	sum->stacks_complete += before.stacks_complete;
	sum->left_out_allocs += before.left_out_allocs;
	sum->left_out_frees += before.left_out_frees;
	sum->first_loss_ns = before.first_loss_ns;
	sum->last_loss_ns = before.last_loss_ns;
	span(sum, next, next_ns);
}

void mp_losses_add(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns)
{
	struct mp_losses before = *sum;
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)next;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
	sum->first_loss_ns = before.first_loss_ns;
	sum->last_loss_ns = before.last_loss_ns;
	span(sum, next, next_ns);
}
