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
