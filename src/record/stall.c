/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stall.h"

#include <time.h>
#include "lib/deadline.h"
#include "record/reader.h"

#define STALL_NS 2000000000ull
/* Maximum time counted between two calls: in a longer one the caller itself did not run */
#define MOST_NS 200000000ull

/* A thread that waits for a disk uses no CPU time.  One that moves tens of millions of blocks to a
 * larger table does, for seconds without other progress. */
static uint64_t thread_cpu_ns(pthread_t thread)
{
	struct timespec ts;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool stall_look(struct reader *r)
{
	uint64_t now = mono_ns(), moved = __atomic_load_n(&r->shared->moved, __ATOMIC_RELAXED);
	struct stall *s = &r->stall;
	uint64_t since = now - s->looked_ns, cpu_ns = thread_cpu_ns(s->aggregator);

	if (moved != s->moved || cpu_ns != s->cpu_ns || !queue_stats(r->shared->queue).bytes)
		s->waited_ns = 0;
	else
		s->waited_ns += since < MOST_NS ? since : MOST_NS;
	s->moved = moved;
	s->cpu_ns = cpu_ns;
	s->looked_ns = now;
	__atomic_store_n(&r->shared->stalled, s->waited_ns >= STALL_NS, __ATOMIC_RELAXED);
	r->config->block->recorder_stalled = s->waited_ns >= STALL_NS;
	return s->waited_ns >= STALL_NS;
}
