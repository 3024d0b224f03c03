/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks/code_ranges.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "formats/session.h"

void code_ranges_free(struct code_ranges *r)
{
	vec_free(&r->now);
	vec_free(&r->later);
}

static uint64_t ticks_of(const struct clock *clock, uint64_t ns)
{
	return ns == UINT64_MAX ? UINT64_MAX : clock_ticks_at(clock, ns);
}

static void find_due(struct code_ranges *r, const struct clock *clock)
{
	r->due = r->later.n ? ticks_of(clock, r->later.at[0].since_ns) : UINT64_MAX;
	vec_for_each (&r->now, range) {
		if (range->doubtful_until && range->doubtful_until < r->due)
			r->due = range->doubtful_until;
	}
	if (r->due == UINT64_MAX)
		r->due = 0;
}

int code_ranges_add(struct code_ranges *r, const struct code_change *c, const struct clock *clock)
{
	size_t i = r->later.n;

	if (vec_push(&r->later, *c))
		return -ENOMEM;
	for (; i > 0 && r->later.at[i - 1].since_ns > c->since_ns; i--)
		r->later.at[i] = r->later.at[i - 1];
	r->later.at[i] = *c;
	find_due(r, clock);
	return 0;
}

/* Return: whether anything changed. */
static bool set_range(struct code_ranges *r, const struct code_range *wanted)
{
	bool changed = false;
	size_t keep = 0;

	vec_for_each (&r->now, range) {
		if (range->start <= wanted->start && wanted->end <= range->end &&
		    range->add == wanted->add && range->doubtful_until == wanted->doubtful_until)
			return false;
	}
	for (size_t i = 0; i < r->now.n; i++) {
		const struct code_range *range = &r->now.at[i];

		if (range->start < wanted->end && wanted->start < range->end) {
			changed = true;
			continue;
		}
		r->now.at[keep++] = *range;
	}
	r->now.n = keep;
	if (!wanted->add && !wanted->doubtful_until)
		return changed;
	return !vec_push(&r->now, *wanted) || changed;
}

/* Return: whether anything changed. */
static bool trust(struct code_ranges *r, const struct code_change *c)
{
	bool any = false;

	vec_for_each (&r->now, range) {
		/* The code can have been replaced again before its tables were complete. */
		if (range->start < c->end && c->start < range->end && range->add == c->add &&
		    range->doubtful_until) {
			range->doubtful_until = 0;
			any = true;
		}
	}
	return any;
}

static bool end_doubt(struct code_ranges *r, uint64_t ticks)
{
	bool any = false;

	vec_for_each (&r->now, range) {
		if (range->doubtful_until && range->doubtful_until <= ticks) {
			range->doubtful_until = 0;
			any = true;
		}
	}
	return any;
}

bool code_ranges_reach(struct code_ranges *r, uint64_t ticks, const struct clock *clock)
{
	bool changed = end_doubt(r, ticks);
	size_t done = 0;

	while (done < r->later.n && ticks_of(clock, r->later.at[done].since_ns) <= ticks) {
		const struct code_change *c = &r->later.at[done++];
		struct code_range range = {.start = c->start, .end = c->end, .add = c->add};

		if (c->is_trusted) {
			changed |= trust(r, c);
			continue;
		}
		if (c->doubtful_until_ns)
			range.doubtful_until = ticks_of(clock, c->doubtful_until_ns);
		changed |= set_range(r, &range);
	}
	r->later.n -= done;
	if (r->later.n)
		memmove(r->later.at, r->later.at + done, r->later.n * sizeof(r->later.at[0]));
	find_due(r, clock);
	return changed;
}

static const struct code_range *range_of(const struct code_ranges *r, uint64_t address)
{
	vec_for_each (&r->now, range) {
		if (address >= range->start && address < range->end)
			return range;
	}
	return NULL;
}

uint32_t code_ranges_apply(const struct code_ranges *r, uint64_t *pc, uint32_t n, uint32_t *flags,
			   bool by_agent)
{
	for (uint32_t i = 0; i < n && r->now.n; i++) {
		const struct code_range *range = range_of(r, ss_pc_instruction(pc[i]));

		if (!range)
			continue;
		pc[i] += range->add;
		if (by_agent && range->doubtful_until && i + 1 < n) {
			*flags &= ~(uint32_t)SS_STACK_COMPLETE;
			*flags |= SS_STACK_NO_TABLE;
			return i + 1;
		}
	}
	return n;
}
