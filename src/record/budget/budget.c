/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/budget/budget.h"

#include <math.h>
#include <stdbool.h>
#include "formats/session.h"

#define LAST_STEPS    5
#define MOST_RISE     8
#define MOST_GROWTH   16
#define SETTLE	      3		/* steps until the measurement shows the new level */
#define LEAST_CAUTION 20	/* steps */
#define MOST_CAUTION  1200	/* two minutes */
#define FILL	      0.8	/* of what is allowed: the most that a lower level may cost */
#define NOTABLE_NS    2000000.0 /* in a step */
#define UNNOTABLE_NS  200000.0	/* in the last steps; that of a target that does nothing */
#define AIM	      0.95	/* of the share, so that the average is below it */
#define PPM	      1e6

void budget_begin(struct budget *b, uint32_t ppm)
{
	*b = (struct budget){.share = AIM * ppm / PPM,
			     .level = SS_LEVEL_FIRST,
			     .hold = SETTLE,
			     .caution = LEAST_CAUTION,
			     .since_fall = LEAST_CAUTION};
}

static void add_step(struct budget_sums *to, const struct budget_step *s, double steps)
{
	const double keep = 1 - 1 / steps;

	to->target = to->target * keep + (double)s->target_ns;
	to->varying = to->varying * keep + (double)s->varying_ns;
	to->fixed = to->fixed * keep + (double)s->fixed_ns;
	to->recorded = to->recorded * keep + (double)s->recorded;
	to->estimated = to->estimated * keep + (double)s->estimated;
}

/* What may be spent on events while @target and @fixed nanoseconds pass.  If the fixed costs alone
 * exceed the share, a little more makes no difference. */
static double allowed(const struct budget *b, double target, double fixed, double steps)
{
	double left = b->share * target - fixed - b->debt_ns * steps / BUDGET_MEMORY_STEPS;

	return left > fixed / 4 ? left : fixed / 4;
}

static void remember(struct budget *b, const struct budget_step *s)
{
	double most;

	add_step(&b->last, s, LAST_STEPS);
	add_step(&b->past, s, BUDGET_MEMORY_STEPS);
	most = b->share * b->past.target;
	b->debt_ns += (double)(s->varying_ns + s->fixed_ns) - b->share * (double)s->target_ns;
	b->debt_ns = b->debt_ns > most ? most : b->debt_ns < -most ? -most : b->debt_ns;
}

/* How many times as much the next lower level costs. */
static double growth(const struct budget *b)
{
	const struct budget_sums *l = &b->last;
	double all = l->recorded > 0 ? l->estimated / l->recorded : HUGE_VAL;
	/* From the lowest level to every allocation it can be more than from one to the next. */
	double most = b->level <= SS_LEVEL_MIN ? MOST_GROWTH : 2;

	return all < most ? all : most;
}

/* What the last steps would have been at the new level. */
static void rescale(struct budget_sums *l, double times)
{
	l->varying *= times;
	l->recorded *= times;
}

static void rise(struct budget *b, double times)
{
	uint32_t by = times < 1 << MOST_RISE ? (uint32_t)ceil(log2(times)) : MOST_RISE;

	/* The level fell too far: try that less often. */
	if (b->since_fall < LEAST_CAUTION && b->caution < MOST_CAUTION)
		b->caution *= 2;
	b->since_fall = LEAST_CAUTION;
	b->hold = b->caution;
	b->level = b->level ? b->level + by : SS_LEVEL_MIN + by - 1;
	if (b->level > SS_LEVEL_MAX)
		b->level = SS_LEVEL_MAX;
	rescale(&b->last, ldexp(1, -(int)by));
}

static void fall(struct budget *b)
{
	rescale(&b->last, growth(b));
	b->level = b->level > SS_LEVEL_MIN ? b->level - 1 : 0;
	b->hold = SETTLE;
	b->since_fall = 0;
}

/* Return: whether the set of recorded blocks, which must not become full, needs a higher level: it
 * would be three quarters full soon. */
static bool is_crowded(const struct budget *b, const struct budget_step *s)
{
	double grown = (double)s->tracked - (double)b->tracked;
	double left = 0.75 * (double)s->room - (double)s->tracked;

	return s->tracked > s->room / 2 && grown > 0 && grown * BUDGET_MEMORY_STEPS > left;
}

uint32_t budget_decide(struct budget *b, const struct budget_step *s)
{
	double spent = (double)s->varying_ns;
	double may = allowed(b, (double)s->target_ns, (double)s->fixed_ns, 1);
	bool crowded = is_crowded(b, s);

	remember(b, s);
	b->tracked = s->tracked;
	b->hold -= b->hold != 0;
	if (++b->since_fall % MOST_CAUTION == 0 && b->caution > LEAST_CAUTION)
		b->caution /= 2;
	/* A step that took much more than it may decides at once, and else the last steps. */
	if (spent < NOTABLE_NS || spent < 4 * may) {
		spent = b->last.varying;
		may = allowed(b, b->last.target, b->last.fixed, LAST_STEPS);
	}
	if (b->level < SS_LEVEL_MAX && spent > may && spent > UNNOTABLE_NS)
		rise(b, spent / may);
	else if (b->level < SS_LEVEL_MAX && crowded)
		rise(b, 2);
	else if (b->level && !b->hold && s->tracked <= s->room / 2 &&
		 b->last.varying * growth(b) < FILL * may)
		fall(b);
	return b->level;
}

void budget_forget(struct budget *b)
{
	b->debt_ns = 0;
	b->past = (struct budget_sums){0};
}

uint32_t budget_cost_ppm(const struct budget *b)
{
	const struct budget_sums *p = &b->past;
	double ppm = p->target > 0 ? (p->varying + p->fixed) / p->target * PPM : 0;

	return ppm < 1000 * PPM ? (uint32_t)ppm : UINT32_MAX;
}
