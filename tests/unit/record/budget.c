/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The loop of --overhead with simulated programs, in simulated time: a day passes in a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "formats/session.h"
#include "record/budget/budget.h"

#define ROOM   (1u << 21)
#define SECOND 10u /* steps */
#define HOUR   (3600 * SECOND)

/* A program, and what memprof costs it. */
struct program {
	double rate;	  /* allocations a second, as many frees */
	double size;	  /* bytes */
	double busy;	  /* processors, without memprof */
	double record_ns; /* an event that is recorded, in target and recorder */
	double pass_ns;	  /* an event that passes through the hook */
	double idle;	  /* processors that the recorder always uses */
};

struct run {
	struct budget b;
	double cost, fixed, target; /* nanoseconds */
	double exact, steps;	    /* steps; those in which everything was recorded */
	uint64_t changes;	    /* of the level */
	uint64_t random;
};

static double uniform(struct run *r)
{
	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(r->random >> 11) * 0x1p-53;
}

static double recorded_part(const struct run *r, const struct program *p)
{
	return r->b.level ? -expm1(-p->size / ldexp(1, (int)r->b.level)) : 1;
}

static void step(struct run *r, const struct program *p, uint64_t tracked)
{
	const double seconds = BUDGET_STEP_NS / 1e9;
	double events = 2 * p->rate * seconds * (0.8 + 0.4 * uniform(r));
	double recorded = events * recorded_part(r, p);
	struct budget_step s = {.recorded = (uint64_t)recorded,
				.estimated = (uint64_t)events,
				.varying_ns = (uint64_t)(recorded * p->record_ns),
				.tracked = tracked,
				.room = ROOM};
	uint32_t before = r->b.level;

	s.fixed_ns = (uint64_t)(events * p->pass_ns + p->idle * BUDGET_STEP_NS);
	s.target_ns = (uint64_t)(p->busy * BUDGET_STEP_NS);
	r->cost += (double)(s.varying_ns + s.fixed_ns);
	r->fixed += (double)s.fixed_ns;
	r->target += (double)s.target_ns;
	r->exact += !before;
	r->steps++;
	r->changes += budget_decide(&r->b, &s) != before;
}

static void run_for(struct run *r, const struct program *p, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		step(r, p, 1000);
}

/* Sums from now on. */
static void forget(struct run *r)
{
	r->cost = r->fixed = r->target = r->exact = r->steps = 0;
	r->changes = 0;
}

static struct run begun(uint32_t ppm)
{
	struct run r = {.random = 1};

	budget_begin(&r.b, ppm);
	return r;
}

/* 0.1 million allocations a second cost 0.6 % when all are recorded. */
static const struct program calm = {1e4, 100, 1, 300, 3, 0.001};
/* Recording all of them costs 1.2 times the program itself. */
static const struct program hot = {2e6, 60, 1, 300, 1, 0.001};
static const struct program flat_out = {2e7, 32, 1, 300, 3, 0.001};
static const struct program idle = {10, 100, 0.0001, 300, 3, 0.001};

static void calm_is_exact(void **state)
{
	struct run r = begun(10000);

	(void)state;
	run_for(&r, &calm, 10 * SECOND);
	assert_int_equal(r.b.level, 0);
	forget(&r);
	run_for(&r, &calm, 24 * HOUR);
	assert_int_equal(r.changes, 0);
	assert_true(r.cost <= 0.01 * r.target);
}

/* The share is used, and not exceeded. */
static void hot_is_sampled(void **state)
{
	static const uint32_t budget[] = {10000, 20000, 50000, 200000};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct run r = begun(budget[i]);
		double share;

		run_for(&r, &hot, 60 * SECOND);
		forget(&r);
		run_for(&r, &hot, 24 * HOUR);
		share = r.cost / r.target * 1e6;
		print_message("# budget %u: cost %.0f, level %u, %llu changes in a day\n",
			      budget[i], share, r.b.level, (unsigned long long)r.changes);
		assert_true(share <= budget[i]);
		assert_true(share - r.fixed / r.target * 1e6 >=
			    0.3 * (budget[i] - r.fixed / r.target * 1e6));
		assert_true(r.changes < 24 * 720);
	}
}

/* If the hooks alone cost more than the share, the rest is little. */
static void out_of_reach(void **state)
{
	struct run r = begun(10000);

	(void)state;
	run_for(&r, &flat_out, 60 * SECOND);
	forget(&r);
	run_for(&r, &flat_out, HOUR);
	assert_true(r.fixed > 0.1 * r.target);
	assert_true(r.cost <= 1.3 * r.fixed);
	assert_true(r.b.level > 0);
}

/* Bursts of seconds in calm hours: on average the share is kept, and most of the time everything is
 * recorded. */
static void bursts(void **state)
{
	struct run r = begun(10000);
	uint64_t burst = 0;

	(void)state;
	for (uint64_t second = 0; second < 24 * 7200; second++) {
		if (!burst && uniform(&r) < 1 / 300.0)
			burst = 1 + (uint64_t)(10 * uniform(&r));
		run_for(&r, burst ? &hot : &calm, SECOND);
		burst -= burst != 0;
	}
	print_message("# bursts: cost %.0f, exact %.0f %%, %llu changes in a day\n",
		      r.cost / r.target * 1e6, 100 * r.exact / r.steps,
		      (unsigned long long)r.changes);
	assert_true(r.cost <= 0.01 * r.target);
	assert_true(r.exact > 0.5 * r.steps);
}

/* The first step of a burst is the last one that costs much. */
static void reacts_at_once(void **state)
{
	struct run r = begun(10000);

	(void)state;
	run_for(&r, &calm, 60 * SECOND);
	assert_int_equal(r.b.level, 0);
	forget(&r);
	run_for(&r, &hot, 1);
	assert_true(r.b.level > 8);
	run_for(&r, &hot, 3);
	forget(&r);
	run_for(&r, &hot, 10);
	assert_true(r.cost <= 0.02 * r.target);
}

/* After a burst everything is recorded again within ten seconds, also if a few came one after the other. */
static void back_to_exact(void **state)
{
	struct run r = begun(20000);

	(void)state;
	for (int i = 0; i < 3; i++) {
		run_for(&r, &hot, SECOND);
		assert_true(r.b.level > 0);
		for (int k = 0; k < 10 && r.b.level; k++)
			run_for(&r, &calm, SECOND);
		assert_int_equal(r.b.level, 0);
	}
}

/* A program that does nothing: what little it allocates is recorded. */
static void idle_is_exact(void **state)
{
	struct run r = begun(10000);

	(void)state;
	run_for(&r, &idle, 60 * SECOND);
	assert_int_equal(r.b.level, 0);
	assert_true(budget_cost_ppm(&r.b) > 10000);
}

/* The agent can know so many blocks at a time. */
static void room_for_blocks(void **state)
{
	struct run r = begun(500000);
	double live = 0;

	(void)state;
	run_for(&r, &calm, 10 * SECOND);
	assert_int_equal(r.b.level, 0);
	/* 0.5 million new blocks a second. */
	for (int i = 0; i < 600; i++) {
		live += 5e4 * recorded_part(&r, &calm);
		step(&r, &calm, (uint64_t)live);
	}
	assert_true(r.b.level > 0);
	assert_true(live < 0.8 * ROOM);
}

static void hostile_counters(void **state)
{
	struct run r = begun(10000);
	struct budget_step s = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
				UINT64_MAX, UINT64_MAX, ROOM};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint32_t level = budget_decide(&r.b, &s);

		assert_true(!level || (level >= SS_LEVEL_MIN && level <= SS_LEVEL_MAX));
		(void)budget_cost_ppm(&r.b);
	}
	run_for(&r, &calm, HOUR);
	assert_true(r.b.level <= SS_LEVEL_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calm_is_exact),	cmocka_unit_test(hot_is_sampled),
	    cmocka_unit_test(out_of_reach),	cmocka_unit_test(bursts),
	    cmocka_unit_test(reacts_at_once),	cmocka_unit_test(back_to_exact),
	    cmocka_unit_test(idle_is_exact),	cmocka_unit_test(room_for_blocks),
	    cmocka_unit_test(hostile_counters),
	};

	return cmocka_run_group_tests_name("the loop of --overhead", tests, NULL, NULL);
}
