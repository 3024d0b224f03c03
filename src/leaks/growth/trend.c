/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/trend.h"

#include <math.h>

/* One of this many intervals can fail to rise in steady growth. */
#define NEARLY 5

/* Least squares of @value over time; the time is the number of the look if @seconds is NULL. */
static void fit(struct trend *t, const double *seconds, const uint64_t *value, size_t n)
{
	double middle = 0, mean = 0, sxx = 0, sxy = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		middle += (seconds ? seconds[i] : (double)i) / (double)n;
		mean += (double)value[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		double x = (seconds ? seconds[i] : (double)i) - middle;

		sxx += x * x;
		sxy += x * ((double)value[i] - mean);
	}
	if (sxx <= 0)
		return;
	t->slope = sxy / sxx;
	for (size_t i = 0; i < n; i++) {
		double x = (seconds ? seconds[i] : (double)i) - middle,
		       off = (double)value[i] - mean - t->slope * x;

		squares += off * off;
	}
	if (n > 2)
		t->error = sqrt(squares / (double)(n - 2) / sxx);
}

/* Is a slope like this, in @n looks at something that only fluctuates, chance in less than one of
 * 200 cases?  The values are those of Student's t distribution at 99.5 %. */
static bool is_significant(const struct trend *t, size_t n)
{
	static const double least[] = {63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355,
				       3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921,
				       2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797};
	const size_t last = sizeof(least) / sizeof(least[0]) - 1, freedom = n - 3;

	return fabs(t->slope) >= least[freedom < last ? freedom : last] * t->error;
}

/* @rises, @falls: of the n - 1 intervals. */
static enum trend_how judge(const struct trend *t, size_t rises, size_t falls, size_t n)
{
	const bool sure = fabs(t->slope) >= TREND_SURE * t->error;
	const size_t intervals = n - 1, along = t->change > 0 ? rises : falls,
		     against = t->change > 0 ? falls : rises;

	if (!rises && !falls)
		return TREND_CONSTANT;
	if (n == 2)
		return TREND_DIFFERENCE;
	if (rises + falls == 1)
		return TREND_ONCE;
	/* The slope must have the sign of the change. */
	if (!t->change || (t->change > 0) != (t->slope > 0))
		return TREND_FLUCTUATES;
	if (along + intervals / NEARLY >= intervals && sure)
		return TREND_STEADY;
	return !against || is_significant(t, n) ? TREND_UNEVEN : TREND_FLUCTUATES;
}

void trend_find(struct trend *t, const double *seconds, const uint64_t *value, const bool *present,
		size_t n)
{
	size_t rises = 0, falls = 0;

	*t = (struct trend){.change = (int64_t)(value[n - 1] - value[0])};
	for (size_t i = 1; i < n; i++) {
		rises += value[i] > value[i - 1];
		falls += value[i] < value[i - 1];
	}
	fit(t, seconds, value, n);
	t->how = judge(t, rises, falls, n);
	if (present && !present[0])
		t->how = present[n - 1] ? TREND_NEW : TREND_FLUCTUATES;
	else if (present && !present[n - 1])
		t->how = TREND_VANISHED;
	if (!seconds)
		t->slope = t->error = 0;
}

const char *trend_text(const struct trend *t)
{
	switch (t->how) {
	case TREND_CONSTANT:
		return "constant";
	case TREND_DIFFERENCE:
		return t->change < 0 ? "shrank" : "grew";
	case TREND_STEADY:
		return t->change < 0 ? "shrinks steadily" : "grows steadily";
	case TREND_UNEVEN:
		return t->change < 0 ? "shrinks unevenly" : "grows unevenly";
	case TREND_ONCE:
		return "changed once";
	case TREND_NEW:
		return "new";
	case TREND_VANISHED:
		return "vanished";
	default:
		return "fluctuates";
	}
}
