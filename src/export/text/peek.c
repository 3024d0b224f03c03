/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "lib/intern.h"
#include "lib/printable.h"
#include "lib/vec.h"
#include "model/filter/pattern.h"
#include "model/model.h"

/* A caller or a callee. */
struct edge {
	struct frame at;    /* its name */
	const char *source; /* where the call is; NULL: not known */
	uint32_t line;
	uint64_t cost;
};

struct edges {
	VEC(struct edge) list;
};

struct peeked {
	struct frame at;
	uint64_t cost, count, self; /* self: of stacks whose site it is */
	struct edges callers, callees;
	uint32_t inner, outer; /* its frames in the present stack */
	bool here;	       /* in the present stack */
};

struct peek {
	struct model *m;
	struct pattern *pattern;
	enum cost cost;
	struct intern *names;
	VEC(struct peeked) at;	/* [id in names - 1] */
	VEC(uint32_t) of_frame; /* [shown_frame.number]: 0: not known; 1: no; else index + 2 */
	VEC(uint32_t) here;	/* indices of the functions in the present stack */
};

static int same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Return: index + 2 of the function of @f, added if it is new; 0 when out of memory. */
static uint32_t function_of(struct peek *k, const struct frame *f)
{
	struct peeked fresh = {.at = *f};
	char *key;
	uint32_t id;
	bool is_new;

	if (asprintf(&key, "%s\n%s", f->function, f->library ? f->library : "") < 0)
		return 0;
	id = intern_text(k->names, key, &is_new);
	free(key);
	if (!id || (is_new && vec_push(&k->at, fresh)))
		return 0;
	return id + 1;
}

static int match(struct peek *k, const struct shown_frame *f, struct mp_err *err)
{
	int found = pattern_find(k->pattern, f->at.function, err);

	if (!found)
		found = pattern_find(k->pattern, f->full, err);
	if (found <= 0)
		return found ? found : 1;
	found = (int)function_of(k, &f->at);
	return found ? found : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* Return: 1: the pattern does not match; index of the function + 2; or a negative errno. */
static int known(struct peek *k, const struct shown_frame *f, struct mp_err *err)
{
	int ret;

	if (vec_reach(&k->of_frame, f->number))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (k->of_frame.at[f->number])
		return (int)k->of_frame.at[f->number];
	ret = match(k, f, err);
	if (ret > 0)
		k->of_frame.at[f->number] = (uint32_t)ret;
	return ret;
}

/* Notes where the functions are in a stack. */
static int find_functions(struct peek *k, const struct shown_stack *s, struct mp_err *err)
{
	k->here.n = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		int id = known(k, &s->at[i], err);
		struct peeked *p;

		if (id < 0)
			return id;
		if (id == 1)
			continue;
		p = &k->at.at[id - 2];
		p->outer = i;
		if (p->here)
			continue;
		p->here = true;
		p->inner = i;
		if (vec_push(&k->here, (uint32_t)id - 2))
			return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	return 0;
}

static bool is_edge(const struct edge *e, const struct edge *k)
{
	return e->line == k->line && same_text(e->source, k->source) &&
	       same_text(e->at.function, k->at.function) && same_text(e->at.library, k->at.library);
}

/* @call: the frame whose line is that of the call. */
static int add_edge(struct edges *edges, const struct frame *at, const struct frame *call,
		    uint64_t cost)
{
	struct edge fresh = {.at = *at, .source = call->source, .line = call->line, .cost = cost};

	vec_for_each (&edges->list, e) {
		if (is_edge(e, &fresh)) {
			e->cost += cost;
			return 0;
		}
	}
	return vec_push(&edges->list, fresh);
}

static int add_function(struct peek *k, struct peeked *p, const struct shown_stack *s,
			const struct group *g)
{
	uint64_t cost = group_cost(g, k->cost);
	int ret = 0;

	p->here = false;
	p->cost += cost;
	p->count += group_count(g, k->cost);
	if (p->inner == s->site)
		p->self += cost;
	if (p->outer + 1 < s->n)
		ret = add_edge(&p->callers, &s->at[p->outer + 1].at, &s->at[p->outer + 1].at, cost);
	if (!ret && p->inner)
		ret = add_edge(&p->callees, &s->at[p->inner - 1].at, &s->at[p->inner].at, cost);
	return ret;
}

static int add_stack(struct peek *k, uint32_t id, struct mp_err *err)
{
	const struct group *g = &k->m->sums.group[id];
	struct shown_stack s;
	int ret;

	if (!group_cost(g, k->cost))
		return 0;
	if (shown_stack(k->m, id, &s))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	ret = find_functions(k, &s, err);
	vec_for_each (&k->here, i) {
		if (!ret && add_function(k, &k->at.at[*i], &s, g))
			ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	return ret;
}

/* ------------------------------------------------------------------ writing -- */

static const char *amount(enum cost cost, uint64_t v, char buf[32])
{
	return cost_is_bytes(cost) ? human_bytes(v, buf) : human_number(v, buf);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static int dearest_edge(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return strcmp(x->at.function, y->at.function);
}

static void write_edges(const struct peek *k, const struct peeked *p, const struct edges *edges,
			const char *title, const char *none, FILE *out)
{
	uint64_t rest = p->cost;
	char a[32], where[TEXT_WHERE];

	fprintf(out, "  %s\n", title);
	vec_sort(&edges->list, dearest_edge);
	vec_for_each (&edges->list, e) {
		fprintf(out, "%s%14s%s %5.1f%%  %s", term_on(out, TERM_AMOUNT),
			amount(k->cost, e->cost, a), term_off(out), percent(e->cost, p->cost),
			printable(e->at.function));
		if (e->source)
			fprintf(out, "  %s:%u", printable(e->source), e->line);
		else
			fprintf(out, " %s", text_library(&e->at, false, where));
		putc('\n', out);
		rest -= e->cost;
	}
	if (rest)
		fprintf(out, "%14s %5.1f%%  %s\n", amount(k->cost, rest, a), percent(rest, p->cost),
			none);
}

static void write_function(const struct peek *k, const struct peeked *p, FILE *out)
{
	char sum[TEXT_COST], a[32], where[TEXT_WHERE];

	fprintf(out, "%s%s%s %s", term_on(out, TERM_BOLD), printable(p->at.function), term_off(out),
		text_library(&p->at, false, where));
	fprintf(out, ": %s", text_cost(k->cost, p->cost, p->count, sum));
	fprintf(out, ", %.1f%% of all; %s as the site\n",
		percent(p->cost, group_cost(&k->m->sums.total, k->cost)),
		amount(k->cost, p->self, a));
	write_edges(k, p, &p->callers, "called by", "(nothing: it is the outermost frame)", out);
	write_edges(k, p, &p->callees, "calls", "(nothing: it is the innermost frame)", out);
}

static int dearest(const void *a, const void *b)
{
	const struct peeked *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return strcmp(x->at.function, y->at.function);
}

static int write_all(struct peek *k, const char *pattern, uint32_t top, FILE *out,
		     struct mp_err *err)
{
	if (!k->at.n)
		return mp_fail(err, MP_EXIT_USAGE, -ENOENT,
			       "--peek: no stack with %s has a function that matches '%.100s'%s",
			       cost_text(k->cost), pattern,
			       k->m->shown.full ? ""
						: "; --full-stacks searches also the "
						  "functions of libc and the C++ library");
	vec_sort(&k->at, dearest);
	fprintf(out, "%s\n", cost_text(k->cost));
	for (size_t i = 0; i < k->at.n && i < top; i++)
		write_function(k, &k->at.at[i], out);
	if (k->at.n > top)
		fprintf(out, "... %s; --top %zu shows %s\n",
			counted(k->at.n - top, "more function"), k->at.n,
			k->at.n - top == 1 ? "it" : "them");
	return 0;
}

int peek_write(struct model *m, const char *pattern, enum cost cost, uint32_t top, FILE *out,
	       struct mp_err *err)
{
	struct peek k = {.m = m, .cost = cost, .names = intern_new()};
	int ret = pattern_new("--peek", pattern, &k.pattern, err);

	if (!ret && !k.names)
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	for (uint32_t id = 0; !ret && id < m->stacks.n; id++)
		ret = add_stack(&k, id, err);
	if (!ret)
		ret = write_all(&k, pattern, top, out, err);
	vec_for_each (&k.at, p) {
		vec_free(&p->callers.list);
		vec_free(&p->callees.list);
	}
	vec_free(&k.at);
	vec_free(&k.of_frame);
	vec_free(&k.here);
	intern_free(k.names);
	pattern_free(k.pattern);
	return ret;
}
