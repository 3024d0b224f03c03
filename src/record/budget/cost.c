/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/budget/cost.h"

#include <math.h>
#include <stdlib.h>
#include "formats/session.h"
#include "lib/cpu_account.h"
#include "lib/deadline.h"

#define LOOPS  20000
#define ROUNDS 5
/* The most that the recorder needs for an event.  Its other work does not depend on events. */
#define EVENT_NS 1000

/* Called in place of the hooked function. */
static __attribute__((noinline)) void original(uint64_t size)
{
	__asm__ volatile("" : : "r"(size));
}

/* Does what ag_entry_sample_malloc does in arch/x86_64/agent-entry.S, and the same for other
 * architectures. */
static __attribute__((noinline)) void pass(struct ss_local *locals, uint64_t tp, uint64_t size,
					   void (*next)(uint64_t))
{
	struct ss_local *l = locals + (uint32_t)(tp * SS_LOCAL_HASH >> 30) % SS_LOCALS;

	if (l->tp != tp || (l->left = (int64_t)((uint64_t)l->left - size)) < 0)
		return;
	next(size);
}

static double measure_pass(void)
{
	struct ss_local *locals = calloc(SS_LOCALS, sizeof(*locals));
	uint64_t tp = (uintptr_t)locals, best = UINT64_MAX;
	void (*volatile next)(uint64_t) = original;

	if (!locals)
		return 0;
	for (int i = 0; i < SS_LOCALS; i++)
		locals[i] = (struct ss_local){.tp = tp, .left = INT64_MAX};
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = mono_ns(), took;

		for (int i = 0; i < LOOPS; i++)
			pass(locals, tp, 16, next);
		took = mono_ns() - start;
		best = took < best ? took : best;
	}
	free(locals);
	return (double)best / LOOPS;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void cost_begin(struct cost *c, pid_t pid)
{
	*c = (struct cost){.pass_ns = measure_pass()};
	c->target_known = !clock_getcpuclockid(pid, &c->target);
	c->target_ns = c->target_known ? read_clock(c->target) : 0;
	c->own_ns = cpu_account_read();
}

/* Return: by how much *@last has grown; it becomes @now. */
static uint64_t advance(uint64_t *last, uint64_t now)
{
	uint64_t grown = now > *last ? now - *last : 0;

	*last = now;
	return grown;
}

static double at_most(double ns, uint64_t most)
{
	return ns < (double)most ? ns : (double)most;
}

void cost_take(struct cost *c, const struct cost_counters *counters,
	       const struct recorder_progress *now, double ns_per_tick, struct budget_step *s)
{
	uint64_t target = advance(&c->target_ns, c->target_known ? read_clock(c->target) : 0);
	uint64_t own = advance(&c->own_ns, cpu_account_read());
	double calls = (double)advance(&c->counters.calls, counters->calls);
	double scale = ns_per_tick * SS_TIMED_CALLS;
	double passing = (double)advance(&c->counters.spent[0], counters->spent[0]) * scale;
	double recording = (double)advance(&c->counters.spent[1], counters->spent[1]) * scale;
	double for_events;

	*s = (struct budget_step){.target_ns = target,
				  .recorded = advance(&c->events, now->events),
				  .estimated = advance(&c->estimated, now->allocs + now->frees)};
	/* Calls pass through a hook without entering the C code, or enter it through similar code. */
	passing += fmax(calls, (double)s->estimated) * c->pass_ns;
	recording = at_most(recording, target);
	passing = at_most(passing, target);
	for_events = at_most(EVENT_NS * (double)s->recorded, own);
	s->varying_ns = (uint64_t)(recording + for_events);
	s->fixed_ns = (uint64_t)(passing + (double)own - for_events);
	c->sums.target_ns += target;
	c->sums.in_target_ns += (uint64_t)(recording + passing);
	c->sums.own_ns += own;
}
