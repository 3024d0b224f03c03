/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Publishes the recorder's counters for its progress line and for memprof status. */
#include "record/internal.h"

void progress_show(struct recorder *r, uint64_t now)
{
	struct mp_losses l;

	losses_note(r, now);
	l = recorder_losses(r);
	r->now.lost = mp_losses_events(&l);
	r->now.file_bytes = r->piece.bytes_before + mpf_bytes(r->file);
	if (r->peak_bytes > r->now.peak_live_bytes)
		r->now.peak_live_bytes = r->peak_bytes;
	r->now.duration_ns = now;
	r->now.live_table_bytes = live_memory(r->live);
	r->now.foreign_frees = r->piece.before.foreign_frees + r->losses.foreign_frees;
	r->config.block->seen_events = r->now.events;
	r->config.block->seen_live_blocks = r->now.live_blocks;
	r->config.block->seen_live_bytes = r->now.live_bytes;
	r->config.block->seen_lost = r->now.lost;
	losses_show(r);
	pthread_mutex_lock(&r->lock);
	r->shown = r->now;
	pthread_mutex_unlock(&r->lock);
}
