/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A simple implementation of the filter, which computes every condition from the allocations. */
#ifndef TESTS_OBVIOUS_H
#define TESTS_OBVIOUS_H

#include "fake.h"

enum what {
	NUMBER,
	FROM,
	TO,
	ALIVE_AT,
	LIFETIME,
	NAME,
	NOT_NAME,
	BACKTRACE,
	THREAD,
	MARKER,
	MAP,
	ALLOCATOR,
	MMAPED,
	ARENA,
	JEMALLOC
};
enum text_of { FUNCTION, SOURCE, LIBRARY };
enum written { PLAIN, HEX, DURATION, TIME, SHARE }; /* SHARE: a number or a percentage */

/* A number that NAME_min and NAME_max compare. */
struct number {
	const char *name;
	uint64_t (*value)(const struct fake *f, int i);
	uint64_t (*whole)(const struct fake *f, int i); /* of percentages */
	enum written written;
	uint64_t least, most; /* to choose from; DURATION: most is a divisor of the runtime */
};

struct condition {
	enum what what;
	const struct number *number;
	enum text_of text_of;
	bool upper, percent, by_name;
	uint64_t v; /* number, index of a word, or set of digits */
	char name[64], text[64];
};

static uint64_t first_of(const struct fake *f, int i)
{
	while (f->a[i].prev >= 0)
		i = f->a[i].prev;
	return (uint64_t)i;
}

static uint64_t last_of(const struct fake *f, int i)
{
	while (f->a[i].next >= 0)
		i = f->a[i].next;
	return (uint64_t)i;
}

static uint64_t position(const struct fake *f, int i)
{
	uint64_t n = 0;

	while (f->a[i].prev >= 0) {
		i = f->a[i].prev;
		n++;
	}
	return n;
}

static uint64_t length(const struct fake *f, int i)
{
	return position(f, (int)last_of(f, i)) + 1;
}

struct group_facts {
	uint64_t n, first, last, leaked, unfreed, most, most_at;
};

static struct group_facts group_facts(const struct fake *f, uint32_t stack)
{
	struct group_facts g = {.first = NEVER};

	for (int i = 0; i < f->n; i++) {
		const struct alloc *a = &f->a[i];
		uint64_t live = 0;

		if (a->stack != stack)
			continue;
		g.n++;
		g.first = a->t < g.first ? a->t : g.first;
		g.last = a->t > g.last ? a->t : g.last;
		g.leaked += f->a[last_of(f, i)].end == NEVER;
		g.unfreed += a->end == NEVER;
		for (int k = 0; k <= i; k++)
			live += f->a[k].stack == stack && f->a[k].died > a->born ? f->a[k].size : 0;
		if (live > g.most) {
			g.most = live;
			g.most_at = a->t;
		}
	}
	return g;
}

static bool in(uint64_t set, uint64_t digit)
{
	return set >> digit & 1;
}

static const struct alloc *last_alloc(const struct fake *f, int i)
{
	return &f->a[last_of(f, i)];
}

static uint64_t end_of(const struct fake *f, const struct alloc *a)
{
	return a->end == NEVER ? f->end : a->end;
}

static uint64_t address(const struct fake *f, int i)
{
	return f->a[i].addr;
}

static uint64_t size(const struct fake *f, int i)
{
	return f->a[i].size;
}

static uint64_t first_size(const struct fake *f, int i)
{
	return f->a[first_of(f, i)].size;
}

static uint64_t last_size(const struct fake *f, int i)
{
	return last_alloc(f, i)->size;
}

static uint64_t lifetime(const struct fake *f, int i)
{
	return end_of(f, &f->a[i]) - f->a[i].t;
}

static uint64_t chain_lifetime(const struct fake *f, int i)
{
	return end_of(f, last_alloc(f, i)) - f->a[first_of(f, i)].t;
}

static uint64_t group_size(const struct fake *f, int i)
{
	return group_facts(f, f->a[i].stack).n;
}

static uint64_t group_interval(const struct fake *f, int i)
{
	struct group_facts g = group_facts(f, f->a[i].stack);

	return g.last - g.first;
}

static uint64_t group_leaked(const struct fake *f, int i)
{
	return group_facts(f, f->a[i].stack).leaked;
}

static uint64_t group_unfreed(const struct fake *f, int i)
{
	return group_facts(f, f->a[i].stack).unfreed;
}

static uint64_t group_most_at(const struct fake *f, int i)
{
	return group_facts(f, f->a[i].stack).most_at;
}

/* PCS - 1 has no symbol: its function is "lN+0x..." and it has no source. */
static bool frame_matches(uint32_t pc, uint32_t digit, const struct condition *c)
{
	if (c->text_of == LIBRARY)
		return in(c->v, pc);
	return pc != PCS - 1 && in(c->v, digit);
}

static bool names_match(const struct fake *f, uint32_t stack, const struct condition *c, int n)
{
	bool asked = false, found = false;

	for (int k = 0; k < n; k++)
		asked = asked || c[k].what == NAME;
	for (uint32_t i = 0; i < f->depth[stack - 1]; i++) {
		uint32_t pc = f->pc[stack - 1][i], digit[2], frames = frames_of(pc, digit);

		for (uint32_t j = 0; j < frames; j++) {
			bool all = true;

			for (int k = 0; k < n; k++) {
				if (c[k].what == NAME)
					all = all && frame_matches(pc, digit[j], &c[k]);
				if (c[k].what == NOT_NAME && frame_matches(pc, digit[j], &c[k]))
					return false;
			}
			found = found || all;
		}
	}
	return found || !asked;
}

static uint64_t depth(const struct fake *f, int a)
{
	uint32_t stack = f->a[a].stack;
	uint64_t n = 0;
	uint32_t digit[2];

	for (uint32_t i = 0; i < f->depth[stack - 1]; i++)
		n += frames_of(f->pc[stack - 1][i], digit);
	return n;
}

static const struct number numbers[] = {
    {"address", address, NULL, HEX, 0x10000, 0x10000 + ADDRS * 64},
    {"size", size, NULL, PLAIN, 0, 400},
    {"first_size", first_size, NULL, PLAIN, 0, 400},
    {"last_size", last_size, NULL, PLAIN, 0, 400},
    {"lifetime", lifetime, NULL, DURATION, 0, 3},
    {"chain_length", length, NULL, PLAIN, 1, 4},
    {"position_in_chain", position, NULL, PLAIN, 0, 3},
    {"chain_lifetime", chain_lifetime, NULL, DURATION, 0, 2},
    {"backtrace_depth", depth, NULL, PLAIN, 1, 5},
    {"group_allocations", group_size, NULL, PLAIN, 0, 2 * EVENTS / STACKS / 3},
    {"group_interval", group_interval, NULL, DURATION, 0, 1},
    {"group_leaked_allocations", group_leaked, group_size, SHARE, 0, 12},
    {"bytehound_group_leaked_allocations", group_unfreed, group_size, SHARE, 0, 12},
    {"group_max_total_usage_first_seen", group_most_at, NULL, TIME, 0, 0},
};

static uint32_t kind_of(const struct alloc *a)
{
	static const uint32_t of_hook[] = {0, 0, 0, 3, 4, 4, 5, 6};

	if (of_hook[a->hook])
		return of_hook[a->hook];
	return a->flags & EV_F_MMAPPED ? 2 : a->flags & EV_F_NON_MAIN ? 1 : 0;
}

static bool lifetime_matches(const struct fake *f, int i, uint64_t kind, uint64_t to)
{
	const struct alloc *a = &f->a[i];
	struct group_facts g;

	switch (kind) {
	case 1:
		return a->end == NEVER;
	case 2:
		return f->a[last_of(f, i)].end == NEVER;
	case 3:
		return a->temporary;
	case 4:
		g = group_facts(f, a->stack);
		return g.leaked == g.n;
	case 5:
		return a->end == NEVER || a->end > to;
	case 6:
		return a->end <= to && a->end != NEVER;
	case 7:
		return a->end != NEVER;
	case 8:
		g = group_facts(f, a->stack);
		return g.unfreed == g.n;
	default:
		return true;
	}
}

static bool marked(const struct fake *f, uint64_t t, uint64_t name)
{
	int latest = -1;

	for (int i = 0; i < (int)MARKS; i++) {
		if (f->mark[i] <= t && (latest < 0 || f->mark[i] >= f->mark[latest]))
			latest = i;
	}
	/* If there are several marks at one time, any of them counts. */
	for (int i = 0; latest >= 0 && i < (int)MARKS; i++) {
		if (f->mark[i] == f->mark[latest] && (uint64_t)i % 2 == name)
			return true;
	}
	return false;
}

static bool mapped(const struct fake *f, const struct alloc *a, const struct condition *c)
{
	for (uint64_t byte = a->addr; byte <= a->addr + (a->size ? a->size - 1 : 0); byte++) {
		for (uint64_t i = 0; i < MAPS; i++) {
			bool wanted = c->by_name ? i % 2 == c->v
						 : c->v >= f->map[i][0] && c->v < f->map[i][1];

			if (wanted && byte >= f->map[i][0] && byte < f->map[i][1])
				return true;
		}
	}
	return false;
}

static bool number_matches(const struct fake *f, int i, const struct condition *c)
{
	uint64_t v = c->number->value(f, i), limit = c->v;

	if (c->percent) {
		limit *= c->number->whole(f, i);
		v *= 100;
	}
	return c->upper ? v <= limit : v >= limit;
}

static bool matches(const struct fake *f, int i, const struct condition *c, uint64_t to)
{
	const struct alloc *a = &f->a[i];
	uint32_t kind = kind_of(a);

	switch (c->what) {
	case NUMBER:
		return number_matches(f, i, c);
	case FROM:
		return a->t >= c->v;
	case TO:
		return a->t <= c->v;
	case ALIVE_AT:
		return a->t <= c->v && a->end > c->v;
	case LIFETIME:
		return lifetime_matches(f, i, c->v, to);
	case BACKTRACE:
		return a->stack == c->v;
	case THREAD:
		return c->by_name ? (a->tid - 100) / 2 == c->v : a->tid == c->v;
	case MARKER:
		return marked(f, a->t, c->v);
	case MAP:
		return mapped(f, a, c);
	case ALLOCATOR:
		return kind == c->v;
	case MMAPED:
		return c->v ? kind == 2 : kind < 2;
	case ARENA:
		return c->v ? kind == 1 : kind == 0 || kind == 2;
	case JEMALLOC:
		return (kind == 3) == c->v;
	default:
		return true; /* names_match() checks all conditions on names together */
	}
}

/* Return: whether one match is enough if the condition is given several times.  For alive_at all
 * must match. */
static bool is_any(const struct condition *c)
{
	return c->what == BACKTRACE || c->what == THREAD || c->what == MARKER || c->what == MAP ||
	       c->what == ALLOCATOR;
}

static bool lets_through(const struct fake *f, int i, const struct condition *c, int n)
{
	uint64_t to = NEVER;

	for (int k = 0; k < n; k++)
		to = c[k].what == TO ? c[k].v : to;
	for (int k = 0; k < n; k++) {
		bool ok = matches(f, i, &c[k], to);

		for (int j = 0; j < n && is_any(&c[k]); j++)
			ok = ok || (c[j].what == c[k].what && matches(f, i, &c[j], to));
		if (!ok)
			return false;
	}
	return names_match(f, f->a[i].stack, c, n);
}

#endif
