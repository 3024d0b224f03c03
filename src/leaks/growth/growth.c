/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 1024 /* bytes: tables and buffers */

/* A line in one look, for the search of its like in the others. */
struct item {
	const struct look_line *line;
	size_t look;
	bool various;
	bool alone; /* it is not known whether it is the same in other looks */
};
struct items {
	VEC(struct item) list;
};

static int by_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* A variable without a symbol has another place in each build. */
static bool is_alone(const struct heap_growth *g, const struct look_line *l)
{
	return !g->same_process && l->kind == RETAINED_HOLDER && l->holder == HOLDER_PLACE &&
	       !l->build;
}

static bool is_plain(const struct look_line *l)
{
	return l->kind == RETAINED_BLOCKS && !l->typed;
}

/* The order of lines that are not the same in all looks. */
static int by_key(const struct item *x, const struct item *y)
{
	const struct look_line *a = x->line, *b = y->line;
	int by = by_number(a->kind, b->kind);

	if (x->alone && y->alone && x->look != y->look)
		return by_number(x->look, y->look);
	if (!by)
		by = by_number(x->alone, y->alone);
	if (!by)
		by = by_number(a->holder, b->holder);
	if (!by)
		by = by_number(a->typed, b->typed);
	/* What they look like can change with their contents. */
	if (!by && is_plain(a))
		return x->various || y->various ? by_number(x->various, y->various)
						: by_number(a->size, b->size);
	if (!by)
		by = by_text(a->name, b->name);
	if (!by)
		by = by_text(a->module, b->module);
	if (!by)
		by = by_text(a->source, b->source);
	return by ? by : by_text(a->build, b->build);
}

static int by_key_and_look(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int by = by_key(x, y);

	return by ? by : by_number(x->look, y->look);
}

/* Return: the number of items from @i on that are the same line. */
static size_t run_at(const struct items *s, size_t i)
{
	size_t n = 1;

	while (i + n < s->list.n && !by_key(&s->list.at[i], &s->list.at[i + n]))
		n++;
	return n;
}

static void sort(struct items *s)
{
	vec_sort(&s->list, by_key_and_look);
}

/* Marks blocks of which no look has many. */
static void mark_various(struct items *s)
{
	size_t n;

	sort(s);
	for (size_t i = 0; i < s->list.n; i += n) {
		const struct look_line *l = s->list.at[i].line;
		uint64_t most = 0, sum = 0;

		n = run_at(s, i);
		for (size_t k = i; k < i + n; k++) {
			sum = k > i && s->list.at[k].look == s->list.at[k - 1].look ? sum : 0;
			sum += s->list.at[k].line->count;
			most = sum > most ? sum : most;
		}
		for (size_t k = i; k < i + n && is_plain(l); k++)
			s->list.at[k].various =
			    most <= (l->size >= LARGE ? GROWTH_FEW_LARGE : GROWTH_FEW);
	}
	sort(s);
}

/* ------------------------------------------------------------- trends -- */

/* The trend of one of the amounts. */
static void find_trend(const struct heap_growth *g, const struct growth_amount *at, bool blocks,
		       struct trend *t)
{
	uint64_t value[GROWTH_MAX_LOOKS];
	bool present[GROWTH_MAX_LOOKS];

	for (size_t i = 0; i < g->n; i++) {
		value[i] = blocks ? at[i].blocks : at[i].bytes;
		present[i] = at[i].present;
	}
	trend_find(t, g->same_process ? g->seconds : NULL, value, present, g->n);
}

static uint64_t size_of_change(const struct trend *t)
{
	return t->change < 0 ? -(uint64_t)t->change : (uint64_t)t->change;
}

/* Return: whether @a is shown before @b. */
static bool before(const struct trend *a, const struct trend *b)
{
	uint64_t x = size_of_change(a), y = size_of_change(b);

	return x != y ? x > y : a->change > b->change;
}

static int by_change(const void *a, const void *b)
{
	const struct growth_line *x = *(struct growth_line *const *)a,
				 *y = *(struct growth_line *const *)b;
	const uint64_t p = x->like->bytes, q = y->like->bytes;

	if (before(&x->bytes, &y->bytes))
		return -1;
	if (before(&y->bytes, &x->bytes))
		return 1;
	return p != q ? (p > q ? -1 : 1) : by_text(x->like->name, y->like->name);
}

/* ------------------------------------------------------------- lines -- */

static struct growth_line *line_new(const struct heap_growth *g)
{
	struct growth_line *l = calloc(1, sizeof(*l));

	if (l)
		l->at = calloc(g->n + 1, sizeof(*l->at));
	if (l && l->at)
		return l;
	free(l);
	return NULL;
}

static void line_free(struct growth_line *l)
{
	struct growth_line *next;

	if (!l)
		return;
	for (struct growth_line *c = l->child; c; c = next) {
		next = c->next;
		line_free(c);
	}
	free(l->at);
	free(l);
}

static int match(struct heap_growth *g, struct growth_line *l, const struct item *same, size_t n);

/* Makes a line of @n items that are the same. */
static int add_line(struct heap_growth *g, struct growth_line **to, const struct item *same,
		    size_t n)
{
	struct growth_line *l = line_new(g);

	if (!l)
		return -ENOMEM;
	*to = l;
	l->various = same->various;
	for (size_t i = 0; i < n; i++) {
		struct growth_amount *at = &l->at[same[i].look];

		/* The largest of the last look. */
		if (!at->present || l->like->bytes < same[i].line->bytes)
			l->like = same[i].line;
		at->present = true;
		at->bytes += same[i].line->bytes;
		at->blocks += same[i].line->blocks;
		at->count += same[i].line->count;
		at->own += same[i].line->own;
	}
	find_trend(g, l->at, false, &l->bytes);
	find_trend(g, l->at, true, &l->blocks);
	return match(g, l, same, n);
}

/* A line that a look does not have can be part of that look's rest. */
static void mark_unlisted(const struct heap_growth *g, struct growth_line *parent)
{
	for (size_t i = 0; i < g->n; i++) {
		bool rest = false;

		for (struct growth_line *c = parent->child; c; c = c->next)
			rest |= c->like->kind == RETAINED_REST && c->at[i].present;
		for (struct growth_line *c = parent->child; c && rest; c = c->next)
			c->unlisted |= c->like->kind != RETAINED_REST && !c->at[i].present;
	}
}

static int sort_below(struct growth_line *parent, size_t n)
{
	struct growth_line **sorted = malloc((n + 1) * sizeof(struct growth_line *));
	size_t i = 0;

	if (!sorted)
		return -ENOMEM;
	for (struct growth_line *c = parent->child; c; c = c->next)
		sorted[i++] = c;
	qsort(sorted, i, sizeof(struct growth_line *), by_change);
	sorted[i] = NULL;
	parent->child = sorted[0];
	for (size_t k = 0; k < i; k++)
		sorted[k]->next = sorted[k + 1];
	free(sorted);
	return 0;
}

/* Makes the lines below @l, which is @n lines of looks.  Recursion is as deep as a look. */
static int match(struct heap_growth *g, struct growth_line *l, const struct item *same, size_t n)
{
	struct growth_line **end = &l->child;
	struct items below = {0};
	size_t lines = 0, run;
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		for (const struct look_line *c = same[i].line->child; c && !ret; c = c->next)
			ret = vec_push(&below.list,
				       ((struct item){c, same[i].look, false, is_alone(g, c)}));
	}
	if (!ret)
		mark_various(&below);
	for (size_t i = 0; i < below.list.n && !ret; i += run) {
		run = run_at(&below, i);
		ret = add_line(g, end, &below.list.at[i], run);
		if (*end)
			end = &(*end)->next;
		lines++;
	}
	vec_free(&below.list);
	mark_unlisted(g, l);
	return ret ? ret : sort_below(l, lines);
}

static int make_lines(struct heap_growth *g)
{
	struct items all = {0};
	int ret = 0;

	for (size_t i = 0; i < g->n && !ret; i++)
		ret = vec_push(&all.list, ((struct item){g->look[i]->all, i, false, false}));
	if (!ret && all.list.n)
		ret = add_line(g, &g->all, all.list.at, all.list.n);
	vec_free(&all.list);
	return ret;
}

/* ------------------------------------------------------------- types -- */

struct type_item {
	const struct look_type *type;
	size_t look;
	bool various;
};
struct type_items {
	VEC(struct type_item) list;
};

static int by_type(const struct type_item *x, const struct type_item *y)
{
	int by = by_text(x->type->name, y->type->name);

	if (!by)
		by = by_text(x->type->module, y->type->module);
	if (!by)
		by = by_number(x->various, y->various);
	return by || x->various ? by : by_number(x->type->size, y->type->size);
}

static int by_type_and_look(const void *a, const void *b)
{
	const struct type_item *x = a, *y = b;
	int by = by_type(x, y);

	return by ? by : by_number(x->look, y->look);
}

static int by_type_change(const void *a, const void *b)
{
	const struct growth_type *x = a, *y = b;

	if (before(&x->bytes, &y->bytes))
		return -1;
	if (before(&y->bytes, &x->bytes))
		return 1;
	/* A table has elements before it needs more bytes. */
	if (before(&x->blocks, &y->blocks))
		return -1;
	if (before(&y->blocks, &x->blocks))
		return 1;
	return by_number(y->like->bytes, x->like->bytes);
}

/* Return: the list of a look that @to is made of. */
static const look_types *list_of(const struct heap_growth *g, size_t look, const growth_types *to)
{
	return to == &g->types ? &g->look[look]->types : &g->look[look]->containers;
}

static int add_type(struct heap_growth *g, growth_types *to, const struct type_item *same, size_t n)
{
	struct growth_type *t;

	if (vec_push(to, ((struct growth_type){.like = same->type})))
		return -ENOMEM;
	t = &to->at[to->n - 1];
	t->various = same->various;
	t->at = calloc(g->n + 1, sizeof(*t->at));
	if (!t->at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct growth_amount *at = &t->at[same[i].look];

		t->like = same[i].type;
		at->present = true;
		at->bytes += same[i].type->bytes;
		at->blocks += same[i].type->count;
		at->own = at->bytes;
		at->count = at->blocks;
	}
	for (size_t i = 0; i < g->n; i++)
		t->unlisted |= !t->at[i].present && list_of(g, i, to)->n >= LOOK_TYPES;
	find_trend(g, t->at, false, &t->bytes);
	find_trend(g, t->at, true, &t->blocks);
	return 0;
}

static size_t type_run_at(const struct type_items *s, size_t i)
{
	size_t n = 1;

	while (i + n < s->list.n && !by_type(&s->list.at[i], &s->list.at[i + n]))
		n++;
	return n;
}

static void sort_types(struct type_items *s)
{
	vec_sort(&s->list, by_type_and_look);
}

/* Marks large blocks without a class of which no look has many: tables that grow. */
static void mark_various_types(struct type_items *s)
{
	size_t n;

	sort_types(s);
	for (size_t i = 0; i < s->list.n; i += n) {
		const struct look_type *t = s->list.at[i].type;
		uint64_t most = 0;

		n = type_run_at(s, i);
		for (size_t k = i; k < i + n; k++)
			most = s->list.at[k].type->count > most ? s->list.at[k].type->count : most;
		for (size_t k = i; k < i + n && !t->name[0]; k++)
			s->list.at[k].various = t->size >= LARGE && most <= GROWTH_FEW_LARGE;
	}
	sort_types(s);
}

static int make_types(struct heap_growth *g, growth_types *to)
{
	struct type_items all = {0};
	int ret = 0;

	for (size_t i = 0; i < g->n && !ret; i++) {
		const look_types *types = list_of(g, i, to);

		for (size_t k = 0; k < types->n && !ret; k++)
			ret = vec_push(&all.list, ((struct type_item){&types->at[k], i, false}));
	}
	if (!ret)
		mark_various_types(&all);
	for (size_t i = 0, n; i < all.list.n && !ret; i += n) {
		n = type_run_at(&all, i);
		ret = add_type(g, to, &all.list.at[i], n);
	}
	vec_free(&all.list);
	vec_sort(to, by_type_change);
	return ret;
}

/* ------------------------------------------------------------- all -- */

static int check_program(const struct look *a, const struct look *b, struct mp_err *err)
{
	bool same = a->build_id && b->build_id && !strcmp(a->build_id, b->build_id);

	if (!same && strcmp(a->program, b->program) != 0)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "the looks are of different programs: %s and %s", a->program,
			       b->program);
	return 0;
}

static bool other_build(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

/* Are the two known to be of different builds, in the program or in a library whose variables have no
 * symbols? */
static bool differ(const struct look *a, const struct look *b)
{
	if (other_build(a->build_id, b->build_id))
		return true;
	vec_for_each (&a->modules, m) {
		vec_for_each (&b->modules, o) {
			if (!strcmp(m->name, o->name) && other_build(m->build_id, o->build_id))
				return true;
		}
	}
	return false;
}

static int set_times(struct heap_growth *g, struct mp_err *err)
{
	g->same_process = g->same_build = true;
	for (size_t i = 1; i < g->n; i++) {
		int ret = check_program(g->look[0], g->look[i], err);

		if (ret)
			return ret;
		g->same_process &= look_same_process(g->look[0], g->look[i]);
		g->same_build &= !differ(g->look[0], g->look[i]);
	}
	for (size_t i = 1; i < g->n && g->same_process; i++) {
		if (g->look[i]->taken_ns <= g->look[i - 1]->taken_ns)
			return mp_fail(
			    err, MP_EXIT_USAGE, -EINVAL,
			    "the looks are not in order of time: the older one goes first");
		g->seconds[i] = (double)(g->look[i]->taken_ns - g->look[0]->taken_ns) / 1e9;
	}
	return 0;
}

static void make_sums(struct heap_growth *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct look *l = g->look[i];

		g->live[i] = (struct growth_amount){true, l->live_bytes, l->live_blocks, 0, 0};
		g->unreached[i] =
		    (struct growth_amount){true, l->unreached_bytes, l->unreached_blocks, 0, 0};
	}
	find_trend(g, g->live, false, &g->live_bytes);
	find_trend(g, g->live, true, &g->live_blocks);
	find_trend(g, g->unreached, false, &g->unreached_bytes);
}

int growth_make(struct heap_growth *g, const struct look *const *look, size_t n, struct mp_err *err)
{
	int ret;

	*g = (struct heap_growth){.n = n, .look = look};
	if (n < 2 || n > GROWTH_MAX_LOOKS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%zu looks cannot be compared", n);
	g->seconds = calloc(n, sizeof(*g->seconds));
	g->live = calloc(n, sizeof(*g->live));
	g->unreached = calloc(n, sizeof(*g->unreached));
	if (!g->seconds || !g->live || !g->unreached)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory to compare looks");
	ret = set_times(g, err);
	if (ret)
		return ret;
	make_sums(g);
	ret = make_lines(g);
	if (!ret)
		ret = make_types(g, &g->types);
	if (!ret)
		ret = make_types(g, &g->containers);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to compare looks") : 0;
}

static void free_types(growth_types *types)
{
	vec_for_each (types, t)
		free(t->at);
	vec_free(types);
}

void growth_free(struct heap_growth *g)
{
	line_free(g->all);
	free_types(&g->types);
	free_types(&g->containers);
	free(g->seconds);
	free(g->live);
	free(g->unreached);
	memset(g, 0, sizeof(*g));
}

enum growth_verdict growth_judge(const struct heap_growth *g, const struct growth_budget *b)
{
	const struct trend *t = &g->live_bytes;
	double most;

	if (b->seconds <= 0)
		return t->change > 0 && (uint64_t)t->change > b->bytes ? GROWTH_ABOVE
								       : GROWTH_WITHIN;
	if (!g->same_process)
		return GROWTH_NO_TIME;
	most = (double)b->bytes / b->seconds;
	if (t->change <= 0 || t->slope <= most)
		return GROWTH_WITHIN;
	if (g->n > 2 && t->how != TREND_STEADY && t->how != TREND_UNEVEN)
		return GROWTH_NO_RATE;
	return t->slope - t->error > most ? GROWTH_ABOVE : GROWTH_NO_RATE;
}
