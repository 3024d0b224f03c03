/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fnv.h"
#include "lib/intern.h"
#include "model/model.h"
#include "model/names/cxx_name.h"

static const char *const names[GROUP_BYS] = {"line", "function", "library", "class", "stack"};

struct finder {
	struct model *m;
	struct places *p;
	enum cost cost;
	struct intern *keys;
	VEC(uint32_t) of_frame; /* [shown_frame.number]: place + 1; 0: not known yet */
};

bool group_by_parse(const char *text, enum group_by *by)
{
	for (int i = 0; i < GROUP_BYS; i++) {
		if (!strcmp(text, names[i])) {
			*by = (enum group_by)i;
			return true;
		}
	}
	return false;
}

const char *group_by_text(enum group_by by)
{
	return names[by];
}

/* Return: a text that places have in common, to be freed by the caller; NULL when out of memory. */
static char *key_of(enum group_by by, const struct frame *f, uint32_t scope, uint32_t stack)
{
	const char *library = f->library ? f->library : "";
	char *key = NULL;
	int n;

	switch (by) {
	case GROUP_BY_LINE:
		if (f->source)
			n = asprintf(&key, "%s\n%u", f->source, f->line);
		else
			n = asprintf(&key, "%s\n%s\n%llx", f->function, library,
				     (unsigned long long)f->address);
		break;
	case GROUP_BY_FUNCTION:
		n = asprintf(&key, "%s\n%s", f->function, library);
		break;
	case GROUP_BY_LIBRARY:
		n = asprintf(&key, "%s", library);
		break;
	case GROUP_BY_CLASS:
		n = asprintf(&key, "%.*s", (int)scope, f->function);
		break;
	default:
		n = asprintf(&key, "%u", stack);
		break;
	}
	return n < 0 ? NULL : key;
}

/* Return: the place of @f + 1, added if it is new; 0 when out of memory. */
static uint32_t place_of(struct finder *s, const struct frame *f, uint32_t stack)
{
	struct place fresh = {.at = *f, .example = stack};
	uint32_t id = 0;
	bool is_new;
	char *key;

	fresh.scope = f->raw_function ? (uint32_t)cxx_scope(f->function) : 0;
	key = key_of(s->p->by, f, fresh.scope, stack);
	if (key) {
		id = intern_text(s->keys, key, &is_new);
		fresh.key = fnv_text(key);
	}
	free(key);
	return id && is_new && vec_push(&s->p->at, fresh) ? 0 : id;
}

/* As place_of(), with the result remembered for each frame unless each stack is a place. */
static uint32_t known_place(struct finder *s, const struct shown_frame *f, uint32_t stack)
{
	if (s->p->by == GROUP_BY_STACK)
		return place_of(s, &f->at, stack);
	if (vec_reach(&s->of_frame, f->number))
		return 0;
	if (!s->of_frame.at[f->number])
		s->of_frame.at[f->number] = place_of(s, &f->at, stack);
	return s->of_frame.at[f->number];
}

static int add_group(struct finder *s, uint32_t id)
{
	static const struct frame none = {.function = "(no stack)"};
	const struct group *g = &s->m->sums.group[id];
	struct shown_stack stack;
	struct place *p;
	uint32_t place;

	if (shown_stack(s->m, id, &stack))
		return -ENOMEM;
	if (stack.site < stack.n)
		place = known_place(s, &stack.at[stack.site], id);
	else if (stack.n)
		place = known_place(s, &stack.at[stack.n > 1], id);
	else
		place = place_of(s, &none, id);
	if (!place)
		return -ENOMEM;
	p = &s->p->at.at[place - 1];
	if (!p->stacks ||
	    group_cost(g, s->cost) > group_cost(&s->m->sums.group[p->example], s->cost)) {
		p->example = id;
		if (stack.n)
			p->at = stack.at[stack.site < stack.n ? stack.site : stack.n > 1].at;
		p->scope = p->at.raw_function ? (uint32_t)cxx_scope(p->at.function) : 0;
	}
	group_add(&p->sum, g);
	p->stacks++;
	s->p->of_stack[id] = place - 1;
	return 0;
}

static int dearest(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* Sorts the places, and changes the indices in of_stack. */
static int sort(struct finder *s)
{
	struct places *p = s->p;
	uint32_t *moved = calloc(p->at.n + 1, sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->at.n; i++) {
		p->at.at[i].position = i;
		p->at.at[i].cost = group_cost(&p->at.at[i].sum, s->cost);
	}
	vec_sort(&p->at, dearest);
	for (uint32_t i = 0; i < p->at.n; i++)
		moved[p->at.at[i].position] = i;
	for (uint32_t id = 0; id < s->m->stacks.n; id++) {
		if (p->of_stack[id] != PLACE_NONE)
			p->of_stack[id] = moved[p->of_stack[id]];
	}
	free(moved);
	return 0;
}

static bool is_used(const struct group *g)
{
	return g->allocations || g->maps || g->live_blocks || g->frees;
}

int places_find(struct model *m, enum group_by by, enum cost cost, bool every, struct places *p)
{
	struct finder s = {.m = m, .p = p, .cost = cost};
	int ret = -ENOMEM;

	*p = (struct places){.by = by};
	s.keys = intern_new();
	p->of_stack = malloc(m->stacks.n * sizeof(*p->of_stack));
	if (s.keys && p->of_stack)
		ret = 0;
	for (uint32_t id = 0; !ret && id < m->stacks.n; id++) {
		const struct group *g = &m->sums.group[id];

		p->of_stack[id] = PLACE_NONE;
		if (group_cost(g, cost) || (every && is_used(g)))
			ret = add_group(&s, id);
	}
	if (!ret)
		ret = sort(&s);
	intern_free(s.keys);
	vec_free(&s.of_frame);
	if (ret)
		places_free(p);
	return ret;
}

void places_free(struct places *p)
{
	vec_free(&p->at);
	free(p->of_stack);
	p->of_stack = NULL;
}
