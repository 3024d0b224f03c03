/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/file.h"
#include "model/model.h"
#include "model/sums/weight.h"

#define FIRST_POINT_NS 1000000u
#define SHORTEST_NS    1000000000ull /* of a recording: less says little */
#define FEWEST_POINTS  16u	     /* in which the stack had live blocks, or could have had */
#define FEWEST_CALLS   8u
#define LOSS_DIVISOR   1000 /* at most this part of the events may be lost */
#define DOUBT_DIVISOR  20   /* at most this part of the live blocks may be uncertain */
#define LARGEST_ERROR  0.1  /* standard error of estimates, of the live bytes */
#define QUARTERS       4u
#define FEWEST_FALLS   3u

/* ------------------------------------------------------------------ curves -- */

void shapes_init(struct shapes *s)
{
	*s = (struct shapes){.point_ns = FIRST_POINT_NS};
}

void shapes_free(struct shapes *s)
{
	vec_for_each (&s->at, c)
		free(c->level);
	vec_free(&s->at);
}

/* Fills in the levels before the current point. */
static int catch_up(const struct shapes *s, struct shape_curve *c, uint64_t bytes)
{
	if (bytes && !c->level) {
		c->level = calloc(SHAPE_POINTS, sizeof(*c->level));
		if (!c->level)
			return -ENOMEM;
	}
	for (; c->known < s->now; c->known++) {
		if (c->level)
			c->level[c->known] = bytes;
	}
	return 0;
}

int shapes_change(struct shapes *s, uint32_t stack, uint64_t bytes)
{
	if (vec_reach(&s->at, stack))
		return -ENOMEM;
	return catch_up(s, &s->at.at[stack], bytes);
}

static int catch_up_all(struct shapes *s, const struct group *groups, uint32_t n)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->at.n && i < n && !ret; i++)
		ret = catch_up(s, &s->at.at[i], groups[i].live_bytes);
	return ret;
}

/* Doubles the length of the points: keeps the level at the end of each pair. */
static void halve(struct shapes *s)
{
	vec_for_each (&s->at, c) {
		for (uint32_t i = 0; c->level && i < SHAPE_POINTS / 2; i++)
			c->level[i] = c->level[2 * i + 1];
		c->known /= 2;
	}
	s->point_ns *= 2;
	s->now /= 2;
}

int shapes_advance(struct shapes *s, uint64_t now_ns, const struct group *groups, uint32_t n)
{
	while (now_ns / s->point_ns >= SHAPE_POINTS) {
		s->now = SHAPE_POINTS;
		if (catch_up_all(s, groups, n))
			return -ENOMEM;
		halve(s);
	}
	if (now_ns / s->point_ns > s->now)
		s->now = (uint32_t)(now_ns / s->point_ns);
	s->until_ns = (s->now + 1) * s->point_ns;
	return 0;
}

int shapes_close(struct shapes *s, const struct group *groups, uint32_t n)
{
	s->now++; /* the current point ends with the recording */
	return catch_up_all(s, groups, n);
}

/* ------------------------------------------------------------------ shapes -- */

static uint64_t highest(const uint64_t *level, uint32_t from, uint32_t to)
{
	uint64_t most = 0;

	for (uint32_t i = from; i < to; i++)
		most = level[i] > most ? level[i] : most;
	return most;
}

static uint64_t lowest(const uint64_t *level, uint32_t from, uint32_t to)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = from; i < to; i++)
		least = level[i] < least ? level[i] : least;
	return least;
}

/* The number of times that the level fell by a quarter of @most, after it had risen by as much. */
static uint32_t falls(const uint64_t *level, uint32_t n, uint64_t most)
{
	uint64_t top = 0, bottom = level[0], step = most / 4 + 1;
	bool rising = true;
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (rising) {
			top = level[i] > top ? level[i] : top;
			if (top - level[i] < step || top - bottom < step)
				continue;
			count++;
			rising = false;
			bottom = level[i];
		} else {
			bottom = level[i] < bottom ? level[i] : bottom;
			if (level[i] - bottom < step)
				continue;
			rising = true;
			top = level[i];
		}
	}
	return count;
}

/* Does each quarter rise by at least a tenth of the whole rise, which is at least a quarter of the
 * highest level, and does it end near that? */
static bool is_growing(const uint64_t *level, uint32_t n, uint64_t most)
{
	uint64_t rise;

	if (level[n - 1] <= level[0] || level[n - 1] < most / 10 * 9)
		return false;
	rise = level[n - 1] - level[0];
	if (rise < most / 4)
		return false;
	for (uint32_t q = 0; q < QUARTERS; q++) {
		uint64_t a = level[q * (n - 1) / QUARTERS], b = level[(q + 1) * (n - 1) / QUARTERS];

		if (b <= a || b - a < rise / 10)
			return false;
	}
	return true;
}

static bool is_plateau(const uint64_t *level, uint32_t n, uint64_t most)
{
	uint64_t high = highest(level, n / 2, n), low = lowest(level, n / 2, n);

	return high - low <= most / 10 && low >= most / 2;
}

/* Was it above half of the highest level for at most a quarter of the time, and does it end below a
 * quarter of that? */
static bool is_burst(const uint64_t *level, uint32_t n, uint64_t most)
{
	uint32_t above = 0;

	for (uint32_t i = 0; i < n; i++)
		above += level[i] > most / 2;
	return above * 4 <= n && level[n - 1] <= most / 4;
}

enum growth growth_of_curve(const uint64_t *level, uint32_t n)
{
	uint64_t most = n ? highest(level, 0, n) : 0;

	if (n < FEWEST_POINTS || !most)
		return GROWTH_UNKNOWN;
	if (falls(level, n, most) >= FEWEST_FALLS)
		return GROWTH_SAWTOOTH;
	if (is_burst(level, n, most))
		return GROWTH_BURST;
	if (is_growing(level, n, most))
		return GROWTH_GROWING;
	return is_plateau(level, n, most) ? GROWTH_PLATEAU : GROWTH_UNKNOWN;
}

static bool is_certain(const struct model *m, const struct group *g)
{
	const struct mp_losses *l = &m->facts.losses;

	if (m->facts.end_ns < SHORTEST_NS || g->allocations < FEWEST_CALLS ||
	    mp_losses_events(l) > m->counts.events / LOSS_DIVISOR ||
	    g->uncertain_blocks > g->live_blocks / DOUBT_DIVISOR)
		return false;
	return !model_is_estimated(m) ||
	       group_error(g->variance_live) <= LARGEST_ERROR * (double)g->live_bytes;
}

enum growth growth_of_sum(const struct model *m, const struct group *sum, uint64_t first_ns,
			  const uint64_t *level, uint32_t known)
{
	uint64_t first = first_ns / m->sums.shapes.point_ns;

	if (!is_certain(m, sum) || first >= known)
		return GROWTH_UNKNOWN;
	return growth_of_curve(level + first, known - (uint32_t)first);
}

enum growth growth_of(const struct model *m, uint32_t stack)
{
	const struct shapes *s = &m->sums.shapes;
	const struct shape_curve *c = stack < s->at.n ? &s->at.at[stack] : NULL;
	const struct group *g;

	if (!c || !c->level || stack >= m->stacks.n)
		return GROWTH_UNKNOWN;
	g = &m->sums.group[stack];
	return growth_of_sum(m, g, g->first_ns, c->level, c->known);
}

const char *growth_name(enum growth shape)
{
	static const char *const name[GROWTHS] = {NULL, "growing", "plateau", "burst", "sawtooth"};

	return name[shape];
}

enum growth growth_named(const char *name)
{
	for (int i = GROWTH_UNKNOWN + 1; i < GROWTHS; i++) {
		if (!strcmp(name, growth_name((enum growth)i)))
			return (enum growth)i;
	}
	return GROWTH_UNKNOWN;
}

const char *growth_words(enum growth shape)
{
	static const char *const words[GROWTHS] = {NULL, "grows steadily", "plateau", "was a burst",
						   "sawtooth"};

	return words[shape];
}
