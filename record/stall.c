/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Is the recording written, or does its disk (or what else the aggregator waits for) stand still?
 */
#include "lib/deadline.h"
#include "record/internal.h"

#define STALL_NS 2000000000ull
#define MOST_NS	 200000000ull /* between two looks: in more than that we did not run ourselves */

bool stall_look(struct recorder *r)
{
	uint64_t now = mono_ns(), moved = __atomic_load_n(&r->moved, __ATOMIC_RELAXED);
	struct stall *s = &r->stall;
	uint64_t since = now - s->looked_ns;

	if (moved != s->moved || !queue_stats(r->queue).bytes)
		s->waited_ns = 0;
	else
		s->waited_ns += since < MOST_NS ? since : MOST_NS;
	s->moved = moved;
	s->looked_ns = now;
	__atomic_store_n(&r->stalled, s->waited_ns >= STALL_NS, __ATOMIC_RELAXED);
	r->config.block->recorder_stalled = s->waited_ns >= STALL_NS;
	return s->waited_ns >= STALL_NS;
}
