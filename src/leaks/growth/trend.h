/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a quantity changes over several looks: steadily, once, or up and down.
 *
 * With two looks there is one difference, which says nothing about the next one.  With more, growth
 * is steady if (nearly) each look has more than the one before and a straight line fits: its slope
 * is at least TREND_SURE times the standard error of the slope.
 */
#ifndef LEAKS_GROWTH_TREND_H
#define LEAKS_GROWTH_TREND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A slope that is this many standard errors is taken for one. */
#define TREND_SURE 3.0

enum trend_how {
	TREND_CONSTANT,	  /* every look has the same */
	TREND_DIFFERENCE, /* there are only two looks */
	TREND_STEADY,	  /* rises, or falls, from (nearly) each look to the next */
	TREND_UNEVEN,	  /* rises, or falls, but by very different amounts, or not each time; or
			     both, but with a slope that is hardly chance */
	TREND_ONCE,	  /* differs between two neighbouring looks, and nowhere else */
	TREND_FLUCTUATES,
	TREND_NEW,	/* the first look does not have it */
	TREND_VANISHED, /* the last look does not have it */
};

struct trend {
	enum trend_how how;
	int64_t change; /* last look - first look; a look that does not have it counts as 0 */
	double slope;	/* least squares, per second; 0 if the times are not known */
	double error;	/* standard error of .slope; 0 with two looks */
};

/**
 * trend_find() - find how a quantity changes
 * @seconds: when each look was taken, ascending; NULL: not known
 * @value: the quantity in each look, 0 where it is not present
 * @present: whether the look has it; NULL: each has
 * @n: number of looks, 2 or more
 */
void trend_find(struct trend *t, const double *seconds, const uint64_t *value, const bool *present,
		size_t n);
/* Return: "grows steadily", "changed once", ... */
const char *trend_text(const struct trend *t);

#endif
