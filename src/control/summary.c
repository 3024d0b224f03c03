/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/summary.h"

/* A program has a heap of its own if the memory that it maps exceeds these bytes and this multiple
 * of what malloc() returned. */
#define OWN_HEAP  (1 << 20)
#define OWN_TIMES 4

bool summary_own_heap(const struct session *s, const struct recorder_progress *p)
{
	return !s->layout.sample_interval && p->mapped_bytes >= OWN_HEAP &&
	       p->mapped_bytes > OWN_TIMES * p->allocated_bytes;
}
