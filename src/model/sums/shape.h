/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How the live bytes of each stack change over time: their level at up to 64 equally spaced moments,
 * and the shape of that curve.  doc/views.md says how the shape is decided.
 */
#ifndef MODEL_SUMS_SHAPE_H
#define MODEL_SUMS_SHAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"
#include "model/group.h"

#define SHAPE_POINTS 64u

enum growth {
	GROWTH_UNKNOWN,	 /* none of the others, too few samples, or too uncertain */
	GROWTH_GROWING,	 /* rises throughout */
	GROWTH_PLATEAU,	 /* has reached a level and stays there */
	GROWTH_BURST,	 /* was high once, for a short time */
	GROWTH_SAWTOOTH, /* rises and falls repeatedly */
	GROWTHS,
};

/* The levels of one stack at the end of each point. */
struct shape_curve {
	uint64_t *level; /* SHAPE_POINTS levels; NULL: all are 0 */
	uint32_t known;	 /* points whose level is known */
};

struct shapes {
	VEC(struct shape_curve) at; /* [stack id] */
	uint64_t point_ns;	    /* length of a point; 0: none was noted */
	uint32_t now;		    /* the current point */
	uint64_t until_ns;	    /* until then it stays that; 0: not known */
};

/* Starts without curves.  @s is to be freed by shapes_free(). */
void shapes_init(struct shapes *s);
void shapes_free(struct shapes *s);
/* Advances to the time @now_ns.  @groups: the sums of the @n stacks now.  Return: 0 or -ENOMEM. */
int shapes_advance(struct shapes *s, uint64_t now_ns, const struct group *groups, uint32_t n);
static inline int shapes_time(struct shapes *s, uint64_t now_ns, const struct group *groups,
			      uint32_t n)
{
	return now_ns < s->until_ns ? 0 : shapes_advance(s, now_ns, groups, n);
}
/* Notes that the live bytes of @stack, @bytes until now, are about to change.  Return: 0 or
 * -ENOMEM. */
int shapes_change(struct shapes *s, uint32_t stack, uint64_t bytes);
static inline int shapes_note(struct shapes *s, uint32_t stack, uint64_t bytes)
{
	return stack < s->at.n && s->at.at[stack].known >= s->now ? 0
								  : shapes_change(s, stack, bytes);
}
/* Completes all curves at the end of the recording.  Return: 0 or -ENOMEM. */
int shapes_close(struct shapes *s, const struct group *groups, uint32_t n);

/* The shape of a curve of @n levels, regardless of how certain they are. */
enum growth growth_of_curve(const uint64_t *level, uint32_t n);

struct model;
/* The shape of a stack's curve; GROWTH_UNKNOWN unless the recording allows to tell. */
enum growth growth_of(const struct model *m, uint32_t stack);

/* As growth_of(), for several stacks together.  @sum: their sums; @first_ns: of their first allocation;
 * @level: @known levels of all of them. */
enum growth growth_of_sum(const struct model *m, const struct group *sum, uint64_t first_ns,
			  const uint64_t *level, uint32_t known);

/* Parses the name of a shape.  Return: GROWTH_UNKNOWN if it is none. */
enum growth growth_named(const char *name);
/* Return: "growing" and so on; NULL for GROWTH_UNKNOWN. */
const char *growth_name(enum growth shape);
/* Return: words that follow "10 MiB in 3 blocks"; NULL for GROWTH_UNKNOWN. */
const char *growth_words(enum growth shape);

#endif
