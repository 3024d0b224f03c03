/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which culled blocks pass a filter: of a sum only what its members say is known. */
#include <errno.h>
#include "model/filter/selection.h"
#include "model/filter/selection_state.h"

enum answer { NO, YES, UNKNOWN };

static enum answer both(enum answer a, enum answer b)
{
	return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
}

/* Are values, all of which are from @least to @most, in the range? */
static enum answer all_within(uint64_t min, uint64_t max, uint64_t least, uint64_t most)
{
	if (most < min || least > max)
		return NO;
	return least >= min && most <= max ? YES : UNKNOWN;
}

static enum answer in_range(const struct range *r, uint64_t least, uint64_t most)
{
	return all_within(r->min, r->max, least, most);
}

static enum answer unknown_if(bool given)
{
	return given ? UNKNOWN : YES;
}

static bool is_given(const struct range *r)
{
	return r->min || r->max != UINT64_MAX;
}

/* When the blocks ended, at the earliest and at the latest. */
struct ends {
	uint64_t earliest, latest;
};

static struct ends ends_of(const struct mp_culled *c)
{
	uint32_t first = 0, last = LIFETIME_CLASSES - 1;
	uint64_t longest;

	while (first < last && !c->lifetime[first])
		first++;
	while (last > first && !c->lifetime[last])
		last--;
	longest = lifetime_least(last + 1) - 1;
	return (struct ends){c->first_ns + lifetime_least(first),
			     longest > UINT64_MAX - c->last_ns ? UINT64_MAX : c->last_ns + longest};
}

/* Culled blocks have ended, and so have the chains that they are in. */
static enum answer fate_fits(const struct selection *s, const struct mp_culled *c)
{
	struct ends ends = ends_of(c);
	enum answer by_to = all_within(0, s->to, ends.earliest, ends.latest);

	switch (s->f->lifetime) {
	case LIFETIME_ONLY_LEAKED:
	case LIFETIME_ONLY_CHAIN_LEAKED:
		return NO;
	case LIFETIME_ONLY_TEMPORARY:
		return c->flags & MP_CULLED_TEMPORARY ? YES : NO;
	case LIFETIME_ONLY_NOT_DEALLOCATED_IN_CURRENT_RANGE:
		return by_to == YES ? NO : by_to == NO ? YES : UNKNOWN;
	case LIFETIME_ONLY_DEALLOCATED_IN_CURRENT_RANGE:
		return by_to;
	default:
		return YES;
	}
}

static enum answer alive_fits(const struct selection *s, const struct mp_culled *c)
{
	struct ends ends = ends_of(c);
	enum answer fits = YES;

	vec_for_each (&s->alive_at, at) {
		if (c->first_ns > *at || ends.latest <= *at)
			return NO;
		fits = both(fits, unknown_if(c->last_ns > *at || ends.earliest <= *at));
	}
	return fits;
}

static enum answer marks_fit(const struct selection *s, const struct mp_culled *c)
{
	enum answer fits = NO;

	if (!s->f->markers.list.n)
		return YES;
	vec_for_each (&s->marked, span) {
		enum answer here = all_within(span->from, span->until - 1, c->first_ns, c->last_ns);

		if (here == YES)
			return YES;
		fits = here == UNKNOWN ? UNKNOWN : fits;
	}
	return fits;
}

/* The conditions on the chain of reallocs.  Of a longer chain than one block the sum only says that
 * it is one. */
static enum answer chain_fits(const struct selection *s, const struct mp_culled *c)
{
	const struct filter *f = s->f;
	bool is_first = !(c->flags & MP_CULLED_CONTINUED);
	bool is_alone = is_first && !(c->flags & MP_CULLED_RESIZED);
	enum answer first, whole;

	first = is_first ? in_range(&f->first_size, c->size, c->size)
			 : unknown_if(is_given(&f->first_size));
	first =
	    both(first, in_range(&f->chain_position, is_first ? 0 : 1, is_first ? 0 : UINT64_MAX));
	whole = is_alone ? in_range(&f->last_size, c->size, c->size)
			 : both(unknown_if(is_given(&f->last_size)),
				unknown_if(is_given(&f->chain_lifetime_ns)));
	whole =
	    both(whole, in_range(&f->chain_length, is_alone ? 1 : 2, is_alone ? 1 : UINT64_MAX));
	return both(first, whole);
}

/* All conditions but those on lifetimes. */
static enum answer fits_apart_from_lifetime(const struct selection *s, const struct mp_culled *c)
{
	const struct filter *f = s->f;
	enum answer a;

	if (!s->stack[c->stack < s->nstacks ? c->stack : 0] || !selection_has_thread(s, c->tid) ||
	    (c->hook < s->hooks.n && !(s->hooks.at[c->hook] >> (c->flags & KIND_FLAGS) & 1)))
		return NO;
	a = both(in_range(&f->size, c->size, c->size),
		 all_within(s->from, s->to, c->first_ns, c->last_ns));
	a = both(a, both(fate_fits(s, c), alive_fits(s, c)));
	a = both(a, both(marks_fit(s, c), chain_fits(s, c)));
	return both(a, unknown_if(is_given(&f->address) || f->maps.list.n || f->spans.n));
}

/* Does class @i of lifetimes fit?  That a block lived to the nanosecond as long as @r->max is as
 * unlikely as any other lifetime, so a limit of classes is taken for one. */
static enum answer class_fits(const struct range *r, uint32_t i)
{
	uint64_t least = lifetime_least(i), most = lifetime_least(i + 1) - 1;

	return i && r->max == least ? NO : in_range(r, least, most);
}

static enum answer lifetime_fits(const struct selection *s, const struct mp_culled *c, uint32_t i)
{
	enum answer fits = class_fits(&s->f->lifetime_ns, i);

	if (!(c->flags & (MP_CULLED_CONTINUED | MP_CULLED_RESIZED)))
		fits = both(fits, class_fits(&s->f->chain_lifetime_ns, i));
	return fits;
}

struct mp_culled selection_part(const struct selection *s, const struct mp_culled *c,
				uint64_t *unjudged)
{
	enum answer rest = fits_apart_from_lifetime(s, c);
	struct mp_culled part = *c;

	*unjudged = 0;
	part.blocks = 0;
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++) {
		enum answer a = both(rest, lifetime_fits(s, c, i));

		if (a == YES)
			part.blocks += c->lifetime[i];
		else
			part.lifetime[i] = 0;
		if (a == UNKNOWN)
			*unjudged += c->lifetime[i];
	}
	/* Blocks of one size and stack differ little in what they really have. */
	if (part.blocks != c->blocks)
		part.usable =
		    (uint64_t)((double)c->usable * (double)part.blocks / (double)c->blocks);
	return part;
}
