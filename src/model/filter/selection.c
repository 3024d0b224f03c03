/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/filter/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/bitmap.h"
#include "model/filter/selection_state.h"
#include "model/filter/stack_conditions.h"
#include "model/model.h"
#include "model/names/allocator.h"
#include "model/sums/weight.h"

/* The end of a block, or that of the recording if the block has none. */
struct fate {
	bool ended, temporary;
	uint64_t time_ns;
};

static uint64_t resolve(const struct selection *s, const struct amount *a, bool upper,
			uint64_t otherwise)
{
	return amount_ns(a, s->start_unix_ns, s->runtime_ns, upper, otherwise);
}

static bool is_given(const struct range *r)
{
	return r->min || r->max != UINT64_MAX;
}

static bool within(const struct range *r, uint64_t v)
{
	return v >= r->min && v <= r->max;
}

struct selection *selection_new(const struct filter *f, const struct mp_info *info,
				uint64_t runtime_ns)
{
	struct selection *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->f = f;
	s->start_unix_ns = info->start_unix_ns;
	s->sample_interval = info->sample_interval;
	s->runtime_ns = runtime_ns;
	s->from = resolve(s, &f->from, false, 0);
	s->to = resolve(s, &f->to, true, UINT64_MAX);
	vec_for_each (&f->alive_at, a) {
		if (vec_push(&s->alive_at, resolve(s, a, false, 0))) {
			selection_free(s);
			return NULL;
		}
	}
	s->of_chains = is_given(&f->last_size) || is_given(&f->chain_length) ||
		       is_given(&f->chain_lifetime_ns) || f->lifetime == LIFETIME_ONLY_CHAIN_LEAKED;
	s->of_groups = f->lifetime == LIFETIME_ONLY_WHOLE_GROUP_LEAKED ||
		       f->group_leaked_min.unit != AMOUNT_NONE ||
		       f->group_leaked_max.unit != AMOUNT_NONE;
	return s;
}

void selection_free(struct selection *s)
{
	if (!s)
		return;
	vec_free(&s->alive_at);
	vec_free(&s->bits);
	links_free(&s->pending);
	links_free(&s->members);
	vec_free(&s->leaked);
	vec_free(&s->tids);
	vec_free(&s->hooks);
	vec_free(&s->marked);
	vec_free(&s->mapped);
	free(s->stack);
	free(s);
}

/* ------------------------------------------------------------------ one block -- */

static int set_bit(struct selection *s, uint64_t ordinal)
{
	if (vec_reach(&s->bits, ordinal / 64))
		return -ENOMEM;
	bitmap_set(s->bits.at, ordinal);
	return 0;
}

static bool lifetime_fits(const struct selection *s, const struct fate *fate)
{
	switch (s->f->lifetime) {
	case LIFETIME_ONLY_LEAKED:
		return !fate->ended;
	case LIFETIME_ONLY_TEMPORARY:
		return fate->temporary;
	case LIFETIME_BYTEHOUND_ONLY_TEMPORARY:
		return fate->ended;
	case LIFETIME_ONLY_NOT_DEALLOCATED_IN_CURRENT_RANGE:
		return !fate->ended || fate->time_ns > s->to;
	case LIFETIME_ONLY_DEALLOCATED_IN_CURRENT_RANGE:
		return fate->ended && fate->time_ns <= s->to;
	default:
		return true; /* conditions on chains and groups are evaluated elsewhere */
	}
}

static bool block_fits(const struct selection *s, const struct model_block *b,
		       const struct history_chain *c, const struct fate *fate)
{
	const struct filter *f = s->f;

	if (b->time_ns < s->from || b->time_ns > s->to || !within(&f->size, b->size) ||
	    !within(&f->address, b->addr) || !within(&f->first_size, c->size) ||
	    !within(&f->chain_position, c->length - 1) || !lifetime_fits(s, fate) ||
	    !within(&f->lifetime_ns, fate->time_ns - b->time_ns))
		return false;
	for (size_t i = 0; i < s->alive_at.n; i++) {
		if (b->time_ns > s->alive_at.at[i] ||
		    (fate->ended && fate->time_ns <= s->alive_at.at[i]))
			return false;
	}
	return true;
}

static bool chain_fits(const struct selection *s, const struct model_block *last,
		       const struct history_chain *c, const struct fate *fate)
{
	const struct filter *f = s->f;

	return within(&f->last_size, last->size) && within(&f->chain_length, c->length) &&
	       within(&f->chain_lifetime_ns,
		      fate->time_ns > c->time_ns ? fate->time_ns - c->time_ns : 0) &&
	       (f->lifetime != LIFETIME_ONLY_CHAIN_LEAKED || !fate->ended);
}

/* ------------------------------------------------------------------ groups' leaks -- */

static int count_leaked(struct selection *s, uint64_t stack, uint64_t n)
{
	if (vec_reach(&s->leaked, stack))
		return -ENOMEM;
	s->leaked.at[stack] += n;
	return 0;
}

/* The number of blocks that @b represents in its group. */
static uint64_t weight(const struct selection *s, const struct model_block *b)
{
	return model_weigh(s->sample_interval, b).blocks;
}

static int count_chain(struct selection *s, const struct model_block *last, bool leaked)
{
	int ret = leaked ? count_leaked(s, last->stack, weight(s, last)) : 0;

	for (const struct link *l = links_of(&s->members, last->chain); leaked && l && !ret;
	     l = links_next(&s->members, l))
		ret = count_leaked(s, l->value, l->count);
	links_clear(&s->members, last->chain);
	return ret;
}

/* ------------------------------------------------------------------ the pass -- */

static int chain_over(struct selection *s, const struct model_block *last,
		      const struct history_chain *c, const struct fate *fate, bool fits)
{
	bool all = chain_fits(s, last, c, fate);
	int ret = fits && all ? set_bit(s, last->ordinal) : 0;

	for (const struct link *l = links_of(&s->pending, last->chain); all && l && !ret;
	     l = links_next(&s->pending, l))
		ret = set_bit(s, l->value);
	links_clear(&s->pending, last->chain);
	if (!ret && s->of_groups)
		ret = count_chain(s, last, !fate->ended);
	return ret;
}

static int select_block(struct selection *s, const struct history *h, const struct model_block *b,
			const struct fate *fate, bool continues)
{
	struct history_chain c = history_chain(h, b);
	bool fits = block_fits(s, b, &c, fate);
	int ret = 0;

	if (!continues)
		return chain_over(s, b, &c, fate, fits);
	if (s->of_groups)
		ret = links_add(&s->members, b->chain, b->stack, weight(s, b));
	if (ret || !fits)
		return ret;
	return s->of_chains ? links_add(&s->pending, b->chain, b->ordinal, 1)
			    : set_bit(s, b->ordinal);
}

bool selection_is_early(const struct selection *s)
{
	return s->f->lifetime == LIFETIME_ALL && !is_given(&s->f->lifetime_ns) && !s->alive_at.n &&
	       !s->of_chains && !s->of_groups;
}

int selection_allocated(struct selection *s, const struct history *h, const struct model_block *b)
{
	struct history_chain c = history_chain(h, b);

	return block_fits(s, b, &c, &(struct fate){.time_ns = b->time_ns}) ? set_bit(s, b->ordinal)
									   : 0;
}

int selection_ended(struct selection *s, const struct history *h, const struct model_block *b,
		    const struct mp_event *by, enum block_end how)
{
	struct fate fate = {true, how == BLOCK_TEMPORARY,
			    by->time_ns > b->time_ns ? by->time_ns : b->time_ns};

	return select_block(s, h, b, &fate, history_continues(by, how));
}

int selection_live(struct selection *s, const struct history *h, const struct model_block *b)
{
	struct fate fate = {false, false, s->runtime_ns > b->time_ns ? s->runtime_ns : b->time_ns};

	return select_block(s, h, b, &fate, false);
}

/* ------------------------------------------------------------------ the whole recording -- */

static bool share_fits(const struct amount *min, const struct amount *max, uint64_t n, uint64_t of)
{
	double share = of ? 100.0 * (double)n / (double)of : 0;

	if (min->unit == AMOUNT_PERCENT ? share < min->percent : n < min->n)
		return false;
	if (max->unit == AMOUNT_PERCENT)
		return share <= max->percent;
	return max->unit == AMOUNT_NONE || n <= max->n;
}

static bool group_fits(const struct selection *s, const struct group *g, uint64_t leaked)
{
	const struct filter *f = s->f;
	uint64_t interval = g->allocations ? g->last_ns - g->first_ns : 0;

	if (!within(&f->group_allocations, g->allocations) ||
	    interval < resolve(s, &f->group_interval_min, false, 0) ||
	    interval > resolve(s, &f->group_interval_max, true, UINT64_MAX) ||
	    g->most_ns < resolve(s, &f->group_time_min, false, 0) ||
	    g->most_ns > resolve(s, &f->group_time_max, true, UINT64_MAX))
		return false;
	if (!share_fits(&f->group_leaked_min, &f->group_leaked_max, leaked, g->allocations) ||
	    !share_fits(&f->group_unfreed_min, &f->group_unfreed_max, g->live_blocks,
			g->allocations))
		return false;
	if (f->lifetime == LIFETIME_ONLY_WHOLE_GROUP_LEAKED)
		return leaked == g->allocations;
	return f->lifetime != LIFETIME_BYTEHOUND_ONLY_WHOLE_GROUP_LEAKED ||
	       g->live_blocks == g->allocations;
}

static bool is_listed(const struct filter *f, uint32_t id)
{
	vec_for_each (&f->backtraces, b) {
		if (*b == id)
			return true;
	}
	return !f->backtraces.n;
}

static int close_stacks(struct selection *s, struct model *m, struct mp_err *err)
{
	s->stack = calloc(m->stacks.n, 1);
	if (!s->stack)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	s->nstacks = m->stacks.n;
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		uint64_t leaked = id < s->leaked.n ? s->leaked.at[id] : 0;

		s->stack[id] = m->sums.group[id].allocations && is_listed(s->f, id) &&
			       group_fits(s, &m->sums.group[id], leaked);
	}
	return stacks_match(s->f, m, s->stack, err);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool thread_is(const struct model_thread *t, const char *wanted)
{
	uint64_t tid;

	if (amount_integer(wanted, &tid))
		return tid == t->tid;
	return t->name && !strcmp(t->name, wanted);
}

static int close_threads(struct selection *s, const struct model *m)
{
	s->all_threads = !s->f->threads.list.n;
	for (size_t i = 0; i < m->tasks.threads.n; i++) {
		for (size_t k = 0; k < s->f->threads.list.n; k++) {
			if (!thread_is(&m->tasks.threads.at[i], s->f->threads.list.at[k]))
				continue;
			if (vec_push(&s->tids, m->tasks.threads.at[i].tid))
				return -ENOMEM;
			break;
		}
	}
	vec_sort(&s->tids, by_number);
	return 0;
}

/* Computes, for each function, a bit mask: bit i is set if blocks with flags i pass. */
static int close_allocators(struct selection *s, const struct model *m)
{
	uint32_t wanted = s->f->allocator & s->f->allocator_choice;

	for (size_t i = 0; i < m->facts.hooks.n; i++) {
		uint32_t flags = 0;

		for (uint32_t k = 0; k <= KIND_FLAGS; k++) {
			struct model_block b = {.hook = (uint16_t)i, .flags = (uint8_t)k};

			flags |= (wanted >> model_allocator(m, &b) & 1) << k;
		}
		if (vec_push(&s->hooks, flags))
			return -ENOMEM;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct bounds *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static bool is_marker(const struct filter *f, const char *name)
{
	vec_for_each (&f->markers.list, text) {
		if (!strcmp(*text, name))
			return true;
	}
	return false;
}

static int close_marks(struct selection *s, const struct model *m)
{
	vec_for_each (&m->facts.marks, mark) {
		struct bounds span = {mark->time_ns, UINT64_MAX};

		if (!is_marker(s->f, mark->name))
			continue;
		vec_for_each (&m->facts.marks, next) {
			if (next->time_ns > span.from && next->time_ns < span.until)
				span.until = next->time_ns;
		}
		if (vec_push(&s->marked, span))
			return -ENOMEM;
	}
	vec_sort(&s->marked, by_start);
	return 0;
}

static bool map_is(const struct mp_map_usage *u, const char *wanted)
{
	uint64_t address;

	if (amount_integer(wanted, &address))
		return address >= u->start && address < u->end;
	return !strcmp(map_usage_name(u), wanted);
}

/* Collects the matching mappings of all snapshots; overlapping ranges are merged. */
static int close_maps(struct selection *s, const struct model *m)
{
	size_t n = 0;

	vec_for_each (&m->facts.map_usage, u) {
		for (size_t i = 0; i < s->f->maps.list.n; i++) {
			if (!map_is(u, s->f->maps.list.at[i]))
				continue;
			if (vec_push(&s->mapped, ((struct bounds){u->start, u->end})))
				return -ENOMEM;
			break;
		}
	}
	if (!s->mapped.n)
		return 0;
	vec_sort(&s->mapped, by_start);
	for (size_t i = 1; i < s->mapped.n; i++) {
		struct bounds *last = &s->mapped.at[n], *next = &s->mapped.at[i];

		if (next->from > last->until)
			s->mapped.at[++n] = *next;
		else if (next->until > last->until)
			last->until = next->until;
	}
	s->mapped.n = n + 1;
	return 0;
}

int selection_close(struct selection *s, struct model *m, struct mp_err *err)
{
	if (close_threads(s, m) || close_allocators(s, m) || close_marks(s, m) || close_maps(s, m))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	links_free(&s->pending);
	links_free(&s->members);
	return close_stacks(s, m, err);
}

/* ------------------------------------------------------------------ answers -- */

static bool is_marked(const struct selection *s, uint64_t time_ns)
{
	vec_for_each (&s->marked, span) {
		if (time_ns >= span->from && time_ns < span->until)
			return true;
	}
	return !s->f->markers.list.n;
}

static bool is_mapped(const struct selection *s, const struct model_block *b)
{
	uint64_t end = b->addr + (b->size ? b->size : 1);
	size_t lo = 0, hi = s->mapped.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->mapped.at[mid].until <= b->addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->mapped.n && s->mapped.at[lo].from < end;
}

static bool is_spanned(const struct selection *s, const struct model_block *b)
{
	uint64_t end = b->addr + (b->size ? b->size : 1);

	vec_for_each (&s->f->spans, span) {
		if (b->addr < span->end && span->start < end && b->time_ns >= span->born_ns &&
		    b->time_ns < span->died_ns)
			return true;
	}
	return !s->f->spans.n;
}

bool selection_has_thread(const struct selection *s, uint32_t tid)
{
	return s->all_threads || vec_search(&s->tids, &tid, by_number);
}

bool selection_has(const struct selection *s, const struct model_block *b)
{
	uint64_t word = b->ordinal / 64;

	if (word >= s->bits.n || !bitmap_has(s->bits.at, b->ordinal) ||
	    !s->stack[b->stack < s->nstacks ? b->stack : 0])
		return false;
	if (b->hook < s->hooks.n && !(s->hooks.at[b->hook] >> (b->flags & KIND_FLAGS) & 1))
		return false;
	return selection_has_thread(s, b->tid) && is_marked(s, b->time_ns) &&
	       (!s->f->maps.list.n || is_mapped(s, b)) && is_spanned(s, b);
}

static bool has(const void *ctx, const struct model_block *b)
{
	return selection_has(ctx, b);
}

void selection_apply(const struct selection *s, struct history *h, bool drops)
{
	history_select(h, &(struct history_filter){has, s, drops});
}
