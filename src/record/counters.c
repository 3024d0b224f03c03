/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/counters.h"

#include "record/aggregator.h"
#include "record/losses.h"

void counters_show(struct aggregator *a, uint64_t now)
{
	struct mp_losses l;

	losses_note(a, now);
	l = losses_now(a);
	a->now.lost = mp_losses_events(&l);
	a->now.thinning.allocations = l.thinned;
	a->now.file_bytes = a->piece.bytes_before + mpf_bytes(a->file);
	a->now.live_bytes = a->levels.section.live_bytes;
	a->now.live_blocks = a->levels.section.live_blocks;
	if (a->levels.peak.bytes > a->now.peak_live_bytes)
		a->now.peak_live_bytes = a->levels.peak.bytes;
	a->now.duration_ns = now;
	a->now.live_table_bytes = live_memory(a->live);
	a->now.tracked = live_count(a->live);
	a->now.foreign_frees = a->piece.before.foreign_frees + a->losses.foreign_frees;
	a->config->block->seen_events = a->now.events;
	a->config->block->seen_live_blocks = a->now.live_blocks;
	a->config->block->seen_live_bytes = a->now.live_bytes;
	a->config->block->seen_lost = a->now.lost;
	a->config->block->seen_thinned = l.thinned;
	a->config->block->seen_pieces_deleted = a->now.pieces_deleted;
	a->config->block->seen_live_only = a->config->live_only;
	losses_show(a);
	pthread_mutex_lock(&a->shared->lock);
	a->shared->shown = a->now;
	pthread_mutex_unlock(&a->shared->lock);
}
