/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/filter/why_empty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/filter/stack_conditions.h"
#include "model/model.h"

struct reason {
	char *text;
	size_t size;
};

static bool say_range(struct reason *r, const char *name)
{
	snprintf(r->text, r->size, "--%s-max is below --%s-min", name, name);
	return true;
}

static bool is_inverted(const struct filter *f, struct reason *r)
{
	const struct {
		const char *name;
		const struct range *range;
	} all[] = {{"address", &f->address},
		   {"size", &f->size},
		   {"first-size", &f->first_size},
		   {"last-size", &f->last_size},
		   {"lifetime", &f->lifetime_ns},
		   {"chain-length", &f->chain_length},
		   {"chain-lifetime", &f->chain_lifetime_ns},
		   {"position-in-chain", &f->chain_position},
		   {"backtrace-depth", &f->depth},
		   {"group-allocations", &f->group_allocations}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].range->max < all[i].range->min)
			return say_range(r, all[i].name);
	}
	return false;
}

static bool is_outside(const struct filter *f, const struct model *m, struct reason *r)
{
	uint64_t start = m->info.start_unix_ns, end = m->facts.end_ns, first = UINT64_MAX, last = 0,
		 from = amount_ns(&f->from, start, end, false, 0),
		 to = amount_ns(&f->to, start, end, true, UINT64_MAX);

	for (uint32_t i = 0; i < m->stacks.n; i++) {
		const struct group *g = &m->unfiltered.group[i];

		if (!g->allocations)
			continue;
		first = g->first_ns < first ? g->first_ns : first;
		last = g->last_ns > last ? g->last_ns : last;
	}
	if (from > last)
		snprintf(r->text, r->size,
			 "--from is %.3f s, but nothing was allocated after %.3f s",
			 (double)from / 1e9, (double)last / 1e9);
	else if (to < first)
		snprintf(r->text, r->size,
			 "--to is %.3f s, but nothing was allocated before %.3f s",
			 (double)to / 1e9, (double)first / 1e9);
	else if (to < from)
		snprintf(r->text, r->size, "--to is before --from");
	else
		return false;
	return true;
}

static bool is_thread(const struct model *m, const char *wanted)
{
	uint64_t tid;
	bool number = amount_integer(wanted, &tid);

	vec_for_each (&m->tasks.threads, t) {
		if (number ? t->tid == tid : t->name && !strcmp(t->name, wanted))
			return true;
	}
	return false;
}

static bool is_mark(const struct model *m, const char *wanted)
{
	vec_for_each (&m->facts.marks, mark) {
		if (!strcmp(mark->name, wanted))
			return true;
	}
	return false;
}

static bool is_map(const struct model *m, const char *wanted)
{
	uint64_t address;
	bool number = amount_integer(wanted, &address);

	vec_for_each (&m->facts.map_usage, u) {
		if (number ? address >= u->start && address < u->end
			   : !strcmp(map_usage_name(u), wanted))
			return true;
	}
	return false;
}

/* Is none of the texts known?  They are alternatives. */
static bool is_unknown(const struct texts *t, const struct model *m,
		       bool (*known)(const struct model *m, const char *wanted), const char *option,
		       const char *what, struct reason *r)
{
	if (!t->list.n)
		return false;
	vec_for_each (&t->list, text) {
		if (known(m, *text))
			return false;
	}
	snprintf(r->text, r->size, "--%s %.100s: the recording has no such %s", option,
		 t->list.at[0], what);
	return true;
}

static bool is_known_stack(const struct filter *f, const struct model *m)
{
	vec_for_each (&f->backtraces, id) {
		if (*id < m->stacks.n && m->unfiltered.group[*id].allocations)
			return true;
	}
	return !f->backtraces.n;
}

/* Does any stack with allocations meet the conditions of @only? */
static bool any_stack(const struct filter *only, struct model *m)
{
	struct suppressed before = m->suppressed;
	uint8_t *keep = calloc(m->stacks.n, 1);
	bool any = false;

	for (uint32_t i = 0; keep && i < m->stacks.n; i++)
		keep[i] = m->unfiltered.group[i].allocations > 0;
	if (!keep || stacks_match(only, m, keep, NULL))
		any = true; /* not known */
	for (uint32_t i = 0; keep && i < m->stacks.n; i++)
		any |= keep[i];
	free(keep);
	m->suppressed = before;
	return any;
}

/* Checks each condition on the names of frames alone. */
static bool is_unnamed(const struct filter *f, struct model *m, struct reason *r)
{
	static const char *const name[] = {"function", "source", "library"};
	const struct search_pair *pair[] = {&f->function, &f->source, &f->library};

	for (int i = 0; i < 6; i++) {
		bool reject = i >= 3;
		const struct search_pair *p = pair[i % 3];
		struct filter only;
		struct search_pair *at;

		if (reject ? !p->reject : !p->want)
			continue;
		filter_init(&only);
		at = i % 3 == 0 ? &only.function : i % 3 == 1 ? &only.source : &only.library;
		*(reject ? &at->reject : &at->want) = reject ? p->reject : p->want;
		if (any_stack(&only, m))
			continue;
		snprintf(r->text, r->size, "--%s%s-regex: %s", reject ? "negative-" : "",
			 name[i % 3],
			 reject ? "every stack has a frame that matches" : "no frame matches");
		return true;
	}
	return false;
}

bool filter_why_empty(const struct filter *f, struct model *m, char *why, size_t size)
{
	struct reason r = {why, size};

	if (!m->unfiltered.group || m->sums.total.allocations || m->sums.total.live_blocks)
		return false;
	if (!m->unfiltered.total.allocations) {
		snprintf(why, size, "the recording has none at all");
		return true;
	}
	if (is_inverted(f, &r) || is_outside(f, m, &r) ||
	    is_unknown(&f->threads, m, is_thread, "thread", "thread", &r) ||
	    is_unknown(&f->markers, m, is_mark, "marker", "mark", &r) ||
	    is_unknown(&f->maps, m, is_map, "from-map", "mapping", &r) || is_unnamed(f, m, &r))
		return true;
	if (!is_known_stack(f, m))
		snprintf(why, size, "--backtraces: the recording has no such stack");
	else if (m->suppressed.stacks)
		snprintf(why, size, "--suppress left out all that meets the other conditions");
	else
		snprintf(why, size, "none meets all conditions");
	return true;
}
