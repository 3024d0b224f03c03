/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/thinned.h"

#define FIRST_GAP_NS 100000000u

static void join_periods(struct thinned_period *to, const struct thinned_period *next)
{
	to->from_ns = next->from_ns < to->from_ns ? next->from_ns : to->from_ns;
	to->to_ns = next->to_ns > to->to_ns ? next->to_ns : to->to_ns;
	to->recorded += next->recorded;
	to->represented += next->represented;
	to->most = next->most > to->most ? next->most : to->most;
}

static bool is_near(const struct thinned *t, const struct thinned_period *last, uint64_t ns)
{
	return ns < last->to_ns || ns - last->to_ns <= t->gap_ns;
}

/* Joins the periods that are near to each other.  The longest possible gap joins all. */
static void join_near(struct thinned *t)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < t->n; i++) {
		if (is_near(t, &t->period[last], t->period[i].from_ns))
			join_periods(&t->period[last], &t->period[i]);
		else
			t->period[++last] = t->period[i];
	}
	t->n = last + 1;
}

void thinned_add_many(struct thinned *t, uint64_t from_ns, uint64_t to_ns, uint8_t weight,
		      uint64_t n)
{
	struct thinned_period p = {from_ns, to_ns, n, n << weight, weight};

	if (!t->gap_ns)
		t->gap_ns = FIRST_GAP_NS;
	if (t->n && is_near(t, &t->period[t->n - 1], from_ns)) {
		join_periods(&t->period[t->n - 1], &p);
		return;
	}
	while (t->n == THINNED_PERIODS) {
		t->gap_ns = t->gap_ns > UINT64_MAX / 2 ? UINT64_MAX : t->gap_ns * 2;
		join_near(t);
	}
	t->period[t->n++] = p;
}

void thinned_add(struct thinned *t, uint64_t time_ns, uint8_t weight)
{
	thinned_add_many(t, time_ns, time_ns, weight, 1);
}

bool thinned_between(const struct thinned *t, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (from_ns <= t->period[i].to_ns && to_ns >= t->period[i].from_ns)
			return true;
	}
	return false;
}
