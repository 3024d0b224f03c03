/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/budget/overhead.h"

#include "lib/deadline.h"

static struct cost_counters counters_of(const struct block_layout *layout,
					const struct recorder_shared *shared)
{
	struct cost_counters sum = {0};

	for (uint32_t k = 0; k < shared->nactive; k++) {
		const struct ss_thread *t = slot_at(layout, shared->active[k]);

		sum.calls += t->calls;
		sum.spent[0] += t->spent[0];
		sum.spent[1] += t->spent[1];
	}
	return sum;
}

static double ns_per_tick(struct recorder_shared *shared)
{
	double ns;

	pthread_mutex_lock(&shared->clock_lock);
	ns = shared->clock.ns_per_tick;
	pthread_mutex_unlock(&shared->clock_lock);
	return ns;
}

/* Return: what happened since the last call. */
static struct budget_step measure(struct overhead *o, const struct block_layout *layout,
				  struct recorder_shared *shared)
{
	struct cost_counters counters = counters_of(layout, shared);
	struct recorder_progress now;
	struct budget_step s;

	pthread_mutex_lock(&shared->lock);
	now = shared->shown;
	pthread_mutex_unlock(&shared->lock);
	cost_take(&o->cost, &counters, &now, ns_per_tick(shared), &s);
	s.tracked = now.tracked;
	s.room = layout->nsampled;
	return s;
}

static void show(const struct overhead *o, struct ss_control *block, struct recorder_shared *shared)
{
	struct recorder_cost cost = o->cost.sums;

	cost.ppm = budget_cost_ppm(&o->budget);
	cost.level = o->budget.level;
	__atomic_store_n(&block->sample_level, cost.level, __ATOMIC_RELAXED);
	__atomic_store_n(&block->seen_cost_ppm, cost.ppm, __ATOMIC_RELAXED);
	pthread_mutex_lock(&shared->lock);
	shared->cost = cost;
	pthread_mutex_unlock(&shared->lock);
}

void overhead_begin(struct overhead *o, const struct block_layout *layout, pid_t pid)
{
	cost_begin(&o->cost, pid);
	budget_begin(&o->budget, layout->overhead_ppm);
}

void overhead_keep(struct overhead *o, struct ss_control *block, const struct block_layout *layout,
		   struct recorder_shared *shared)
{
	uint64_t now = mono_ns();
	bool first = !o->next_ns;
	struct budget_step s;

	if (now < o->next_ns)
		return;
	o->next_ns = now + BUDGET_STEP_NS;
	s = measure(o, layout, shared);
	/* The first step has what an earlier recorder of the session has cost. */
	if (!first)
		budget_decide(&o->budget, &s);
	/* Until a call enters the agent, it is attaching that costs. */
	if (!o->begun) {
		o->cost.sums = (struct recorder_cost){0};
		budget_forget(&o->budget);
	}
	o->begun = shared->nactive;
	show(o, block, shared);
}
