/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a recording with a budget costs.
 *
 * In the target: the agent times one of SS_TIMED_CALLS of the calls that enter its C code, without
 * the original function; this includes walking the stack and writing the record.  Calls that do not
 * enter it pass through a few instructions in the hook.  Their number is estimated, because the
 * hook does not count them; their time is measured once, with the same instructions in memprof.
 * Not included is what the target loses because its data was displaced from the caches.
 *
 * In memprof: the CPU time of the threads that record this process (lib/cpu_account.h).
 */
#ifndef RECORD_BUDGET_COST_H
#define RECORD_BUDGET_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include "record/budget/budget.h"
#include "record/recorder.h"

/* Counters of the target's threads, summed. */
struct cost_counters {
	uint64_t calls, spent[2]; /* as in struct ss_thread */
};

struct cost {
	clockid_t target; /* CPU time of the target */
	bool target_known;
	double pass_ns; /* a call that passes through a hook */
	struct cost_counters counters;
	uint64_t target_ns, own_ns, events, estimated; /* at the last step */
	struct recorder_cost sums;
};

/* Measures the time of a hook that a call passes through, and begins.  @pid: the target */
void cost_begin(struct cost *c, pid_t pid);

/**
 * cost_take() - what happened since the last call, or cost_begin()
 * @counters: now; the target can have changed them to anything
 * @now: counters of the recorder
 * @ns_per_tick: of the agent's clock
 * Sets all members of @s but tracked and room, and adds to @c->sums.
 */
void cost_take(struct cost *c, const struct cost_counters *counters,
	       const struct recorder_progress *now, double ns_per_tick, struct budget_step *s);

#endif
