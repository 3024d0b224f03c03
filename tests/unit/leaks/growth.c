/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Trends, stable names, the matching of looks, and files of looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "leaks/growth/growth.h"
#include "leaks/growth/look_file.h"

/* ------------------------------------------------------------- trends -- */

static struct trend trend_of(const uint64_t *value, size_t n)
{
	double seconds[GROWTH_MAX_LOOKS];
	struct trend t;

	for (size_t i = 0; i < n; i++)
		seconds[i] = 10 * (double)i;
	trend_find(&t, seconds, value, NULL, n);
	return t;
}
#define TREND(...) trend_of((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)

static void says(struct trend t, const char *text)
{
	assert_string_equal(trend_text(&t), text);
}

static void test_two_looks(void **state)
{
	struct trend t = TREND(100, 150);

	(void)state;
	says(t, "grew");
	assert_int_equal(t.change, 50);
	assert_true(t.slope > 4.999 && t.slope < 5.001);
	assert_true(t.error == 0);
	says(TREND(150, 100), "shrank");
	says(TREND(7, 7), "constant");
}

static void test_steady(void **state)
{
	struct trend t = TREND(0, 10, 20);

	(void)state;
	says(t, "grows steadily");
	assert_true(t.slope > 0.999 && t.slope < 1.001 && t.error < 1e-9);
	says(TREND(100, 190, 310, 400, 505), "grows steadily");
	says(TREND(505, 400, 310, 190, 100), "shrinks steadily");
	/* Of six intervals one does not rise. */
	says(TREND(0, 10, 20, 20, 30, 40, 50), "grows steadily");
	says(TREND(0, 10, 20, 19, 30, 40, 50), "grows steadily");
}

static void test_not_steady(void **state)
{
	(void)state;
	says(TREND(5, 5, 5, 5), "constant");
	says(TREND(5, 5, 50, 50), "changed once");
	says(TREND(50, 5, 5), "changed once");
	/* Rises each time, but nearly all of it at once. */
	says(TREND(0, 100, 101), "grows unevenly");
	says(TREND(0, 0, 100, 100, 200, 200), "grows unevenly");
	says(TREND(10, 90, 20, 80, 30), "fluctuates");
	says(TREND(10, 20, 10), "fluctuates");
	/* The same noise with a slope, in few looks and in many. */
	says(TREND(0, 30, 20), "fluctuates");
	says(TREND(0, 15, 10, 25, 20, 35, 30, 45, 40, 55), "grows unevenly");
	says(TREND(0, 15, 10, 25), "fluctuates");
	/* t is 5.7 with three degrees of freedom, then 6.2. */
	says(TREND(142, 139, 158, 166, 178), "fluctuates");
	says(TREND(142, 140, 156, 166, 178), "grows unevenly");
	says(TREND(178, 166, 156, 140, 142), "shrinks unevenly");
}

static void test_error(void **state)
{
	/* y = 1, 3, 2, 5 at x = 0, 10, 20, 30: slope 0.11, residuals -0.1, 0.8, -1.3, 0.6. */
	struct trend t = TREND(1, 3, 2, 5);

	(void)state;
	assert_true(t.slope > 0.1099 && t.slope < 0.1101);
	/* sqrt(2.7 / 2 / 500) */
	assert_true(t.error > 0.0519 && t.error < 0.0521);
}

static void test_presence(void **state)
{
	const uint64_t value[] = {0, 5, 9};
	struct trend t;

	(void)state;
	trend_find(&t, NULL, value, (const bool[]){false, true, true}, 3);
	says(t, "new");
	assert_int_equal(t.change, 9);
	assert_true(t.slope == 0 && t.error == 0);
	trend_find(&t, NULL, (const uint64_t[]){9, 5, 0}, (const bool[]){true, true, false}, 3);
	says(t, "vanished");
	trend_find(&t, NULL, (const uint64_t[]){0, 5, 0}, (const bool[]){false, true, false}, 3);
	says(t, "fluctuates");
}

static void test_extremes(void **state)
{
	(void)state;
	assert_int_equal(TREND(UINT64_MAX / 2, 0).change, -(INT64_MAX));
	says(TREND(0, UINT64_MAX / 4, UINT64_MAX / 2), "grows steadily");
	/* Two looks at the same time have no slope. */
	{
		struct trend t;

		trend_find(&t, (const double[]){0, 0}, (const uint64_t[]){1, 2}, NULL, 2);
		assert_true(t.slope == 0);
		assert_int_equal(t.change, 1);
	}
}

/* ------------------------------------------------------------- names -- */

static void is_stable(const char *name, enum holder_kind holder, pid_t tid, const char *wanted)
{
	char *got = look_stable_name(name, RETAINED_HOLDER, holder, tid);

	assert_string_equal(got, wanted);
	free(got);
}

static void test_names(void **state)
{
	(void)state;
	is_stable("g_table12", HOLDER_VARIABLE, 0, "g_table12");
	is_stable(".bss+0x1240", HOLDER_PLACE, 0, ".bss+0x1240");
	is_stable("t_buffer of thread 12 (worker-3)", HOLDER_TLS, 12,
		  "t_buffer of threads worker-*");
	is_stable("t_buffer of thread 12", HOLDER_TLS, 12, "t_buffer of a thread");
	is_stable("serve2(int) of thread 4711 (http-80-exec-17)", HOLDER_FRAME, 4711,
		  "serve2(int) of threads http-*-exec-*");
	is_stable("stack of thread 12 (a (b)) (frame not known)", HOLDER_STACK, 12,
		  "stack of threads a (b) (frame not known)");
	is_stable("stack of thread 12 (frame not known)", HOLDER_STACK, 12,
		  "stack of a thread (frame not known)");
	is_stable("f() of thread 12 (x)y)", HOLDER_FRAME, 12, "f() of threads x)y");
	is_stable("f() of thread 12 (", HOLDER_FRAME, 12, "f() of a thread (");
	/* Names that only look like it. */
	is_stable("thread 12 () of thread 12 (a)", HOLDER_FRAME, 12, "thread 12 () of threads a");
	is_stable("of no thread", HOLDER_FRAME, 12, "of no thread");
	is_stable("mapping at 0x7f0012 ", HOLDER_MAPPING, 0, "mapping ");
	is_stable("mapping at 0x7f0012", HOLDER_MAPPING, 0, "mapping");
	is_stable("mapping at 0x7f0012 /dev/shm/pool.123-4", HOLDER_MAPPING, 0,
		  "mapping /dev/shm/pool.*-*");
	is_stable("code made at run time at 0x7f0012", HOLDER_CODE, 0, "code made at run time");
	is_stable("the kernel (epoll or a timer)", HOLDER_KERNEL, 0,
		  "the kernel (epoll or a timer)");
}

/* ------------------------------------------------------------- matching -- */

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

/* Appends a line below @parent. */
static struct look_line *below(struct look_line *parent, enum retained_kind kind, const char *name,
			       uint64_t count, uint64_t size)
{
	struct look_line *l = look_line_new(kind), **at = &parent->child;

	l->holder = HOLDER_VARIABLE;
	l->name = copy(name);
	l->module = kind == RETAINED_HOLDER ? copy("app") : NULL;
	l->count = count;
	l->size = kind == RETAINED_BLOCKS ? size : 0;
	l->own = kind == RETAINED_BLOCKS ? count * size : 0;
	l->bytes = l->own;
	l->blocks = kind == RETAINED_BLOCKS ? count : 0;
	while (*at)
		at = &(*at)->next;
	*at = l;
	return l;
}

/* Adds up what each line retains. */
static void settle(struct look_line *l)
{
	for (struct look_line *c = l->child; c; c = c->next) {
		settle(c);
		l->bytes += c->bytes;
		l->blocks += c->blocks;
	}
}

static void look_begin(struct look *l, uint64_t seconds)
{
	memset(l, 0, sizeof(*l));
	l->program = copy("app");
	l->version = copy("0.2");
	l->build_id = copy("00ff");
	l->name = copy("app");
	l->mode = copy("copy");
	l->boot = copy("boot");
	l->pid = 12;
	l->started = 5;
	l->taken_ns = (seconds + 1) * 1000000000;
	l->all = look_line_new(RETAINED_ALL);
}

static void look_end(struct look *l)
{
	settle(l->all);
	l->live_bytes = l->all->bytes;
	l->live_blocks = l->all->blocks;
	look_set_builds(l);
}

static const struct growth_line *child(const struct growth_line *of, size_t number)
{
	const struct growth_line *l = of->child;

	while (number-- && l)
		l = l->next;
	assert_non_null(l);
	return l;
}

static size_t children(const struct growth_line *of)
{
	size_t n = 0;

	for (const struct growth_line *l = of->child; l; l = l->next)
		n++;
	return n;
}

static void make(struct heap_growth *g, const struct look *l, size_t n)
{
	static const struct look *look[GROWTH_MAX_LOOKS];
	struct mp_err err;

	for (size_t i = 0; i < n; i++)
		look[i] = &l[i];
	assert_int_equal(growth_make(g, look, n, &err), 0);
}

/* A hash table whose array doubles, with what hangs on it: one way through all looks. */
static void test_table_doubles(void **state)
{
	struct look l[3];
	struct heap_growth g;
	const struct growth_line *map, *array, *entries;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		look_begin(&l[i], 10 * i);
		below(below(below(l[i].all, RETAINED_HOLDER, "g_map", 0, 0), RETAINED_BLOCKS,
			    i == 1 ? "data" : "pointers", 1, 128ull << i),
		      RETAINED_BLOCKS, "pointers", 100 * (i + 1), 48);
		look_end(&l[i]);
	}
	make(&g, l, 3);
	assert_int_equal(children(g.all), 1);
	map = child(g.all, 0);
	assert_string_equal(trend_text(&map->bytes), "grows steadily");
	assert_int_equal(children(map), 1);
	array = child(map, 0);
	assert_true(array->various);
	assert_int_equal(array->at[2].own, 512);
	assert_string_equal(array->like->name, "pointers");
	assert_int_equal(children(array), 1);
	entries = child(array, 0);
	assert_false(entries->various);
	assert_int_equal(entries->at[0].count, 100);
	assert_int_equal(entries->at[2].count, 300);
	assert_int_equal(entries->blocks.change, 200);
	assert_true(entries->bytes.slope > 479 && entries->bytes.slope < 481);
	growth_free(&g);
	for (int i = 0; i < 3; i++)
		look_free(&l[i]);
}

/* Sizes with many blocks are told apart; text and pointers of one size are not, types are. */
static void test_kinds(void **state)
{
	struct look l[2];
	struct heap_growth g;
	const struct growth_line *v;

	(void)state;
	for (uint64_t i = 0; i < 2; i++) {
		struct look_line *var, *session;

		look_begin(&l[i], i);
		var = below(l[i].all, RETAINED_HOLDER, "g_v", 0, 0);
		below(var, RETAINED_BLOCKS, i ? "text" : "data", 10 + i, 40);
		below(var, RETAINED_BLOCKS, "zeros", 5, 40);
		below(var, RETAINED_BLOCKS, "zeros", 20, 56);
		session = below(var, RETAINED_BLOCKS, "session", 7 + 3 * i, 40);
		session->typed = true;
		session->size = i ? 0 : 40;
		below(var, RETAINED_BLOCKS, "data", 1, 5000);
		below(var, RETAINED_BLOCKS, "data", 1 + i, 9000);
		look_end(&l[i]);
	}
	make(&g, l, 2);
	v = child(g.all, 0);
	assert_int_equal(children(v), 4);
	/* Large ones that are few. */
	assert_true(child(v, 0)->various);
	assert_int_equal(child(v, 0)->bytes.change, 9000);
	assert_int_equal(child(v, 0)->at[1].count, 3);
	/* 40 bytes, whatever they look like. */
	assert_int_equal(child(v, 2)->at[0].count, 15);
	assert_int_equal(child(v, 2)->at[1].count, 16);
	assert_int_equal(child(v, 3)->at[0].count, 20);
	assert_string_equal(child(v, 1)->like->name, "session");
	assert_int_equal(child(v, 1)->at[1].count, 10);
	growth_free(&g);
	for (int i = 0; i < 2; i++)
		look_free(&l[i]);
}

static void add_type(struct look *l, const char *name, uint64_t size, uint64_t count)
{
	const struct look_type t = {copy(name), NULL, size, count, count * (size ? size : 100)};

	assert_int_equal(vec_push(&l->types, t), 0);
}

/* Large blocks without a class that are few of each size are one type, and others between them are
 * not. */
static void test_types(void **state)
{
	struct look l[2];
	struct heap_growth g;

	(void)state;
	for (uint64_t i = 0; i < 2; i++) {
		look_begin(&l[i], i);
		look_end(&l[i]);
		add_type(&l[i], "", 2000, 3);
		add_type(&l[i], "", 3000, 50 + 50 * i);
		add_type(&l[i], "", 4000 << i, 1 + i);
		add_type(&l[i], "", 5000, 2);
		add_type(&l[i], "", 40, 7);
		add_type(&l[i], "session", 0, 10 + i);
	}
	make(&g, l, 2);
	assert_int_equal(g.types.n, 4);
	assert_int_equal(g.types.at[0].like->size, 3000);
	assert_int_equal(g.types.at[0].bytes.change, 150000);
	assert_true(g.types.at[1].various);
	assert_int_equal(g.types.at[1].bytes.change, 12000);
	assert_int_equal(g.types.at[1].at[1].count, 7);
	assert_string_equal(g.types.at[2].like->name, "session");
	assert_int_equal(g.types.at[2].blocks.change, 1);
	assert_string_equal(trend_text(&g.types.at[3].bytes), "constant");
	growth_free(&g);
	for (int i = 0; i < 2; i++)
		look_free(&l[i]);
}

/* What a look lacks can be among the lines that it does not list. */
static void test_new_and_rest(void **state)
{
	struct look l[2];
	struct heap_growth g;

	(void)state;
	for (uint64_t i = 0; i < 2; i++) {
		look_begin(&l[i], i);
		below(below(l[i].all, RETAINED_HOLDER, i ? "g_new" : "g_old", 0, 0),
		      RETAINED_BLOCKS, "data", 2, 64 + i);
		below(below(l[i].all, RETAINED_HOLDER, "g_same", 0, 0), RETAINED_BLOCKS, "data", 2,
		      40);
		if (!i)
			below(l[i].all, RETAINED_REST, NULL, 3, 0);
		look_end(&l[i]);
	}
	make(&g, l, 2);
	assert_int_equal(children(g.all), 4);
	for (const struct growth_line *c = g.all->child; c; c = c->next) {
		if (c->like->kind == RETAINED_REST)
			continue;
		if (!strcmp(c->like->name, "g_new")) {
			assert_string_equal(trend_text(&c->bytes), "new");
			assert_true(c->unlisted);
		} else if (!strcmp(c->like->name, "g_old")) {
			assert_string_equal(trend_text(&c->bytes), "vanished");
			assert_false(c->unlisted);
		} else {
			assert_string_equal(trend_text(&c->bytes), "constant");
		}
	}
	growth_free(&g);
	for (int i = 0; i < 2; i++)
		look_free(&l[i]);
}

/* Variables without a symbol are the same only in the same build. */
static void test_builds(void **state)
{
	struct look l[2];
	struct heap_growth g;
	/* The same build, another one, and one that is not known. */
	static const char *const builds[][2] = {{"11", "11"}, {"11", "22"}, {NULL, NULL}};

	(void)state;
	for (int other = 0; other < 3; other++) {
		for (int i = 0; i < 2; i++) {
			struct look_module m = {copy("app"), copy(builds[other][i])};
			struct look_line *var;

			look_begin(&l[i], 0);
			l[i].pid += i; /* another run */
			var = below(l[i].all, RETAINED_HOLDER, ".bss+0x10", 0, 0);
			var->holder = HOLDER_PLACE;
			below(var, RETAINED_BLOCKS, "data", 10, 48);
			assert_int_equal(vec_push(&l[i].modules, m), 0);
			look_end(&l[i]);
		}
		make(&g, l, 2);
		assert_false(g.same_process);
		assert_int_equal(g.same_build, other != 1);
		assert_int_equal(children(g.all), other ? 2 : 1);
		assert_true(g.live_bytes.slope == 0);
		growth_free(&g);
		for (int i = 0; i < 2; i++)
			look_free(&l[i]);
	}
}

static void test_refused(void **state)
{
	struct look l[2];
	const struct look *look[2] = {&l[0], &l[1]};
	struct mp_err err = {0};
	struct heap_growth g;

	(void)state;
	for (int i = 0; i < 2; i++) {
		look_begin(&l[i], (uint64_t)(1 - i));
		look_end(&l[i]);
	}
	assert_int_equal(growth_make(&g, look, 2, &err), -EINVAL);
	assert_non_null(strstr(err.what, "not in order of time"));
	growth_free(&g);
	free(l[1].program);
	free(l[1].build_id);
	l[1].program = copy("other");
	l[1].build_id = NULL;
	assert_int_equal(growth_make(&g, look, 2, &err), -EINVAL);
	assert_non_null(strstr(err.what, "different programs: app and other"));
	growth_free(&g);
	for (int i = 0; i < 2; i++)
		look_free(&l[i]);
}

static enum growth_verdict judged(const uint64_t *bytes, size_t n, uint64_t budget, double seconds)
{
	const struct growth_budget b = {budget, seconds};
	enum growth_verdict v;
	struct look l[8];
	struct heap_growth g;

	for (size_t i = 0; i < n; i++) {
		look_begin(&l[i], 10 * i);
		below(below(l[i].all, RETAINED_HOLDER, "g", 0, 0), RETAINED_BLOCKS, "data", 1,
		      bytes[i]);
		look_end(&l[i]);
	}
	make(&g, l, n);
	v = growth_judge(&g, &b);
	growth_free(&g);
	for (size_t i = 0; i < n; i++)
		look_free(&l[i]);
	return v;
}
#define JUDGED(budget, seconds, ...)                                                               \
	judged((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8, budget,     \
	       seconds)

static void test_budget(void **state)
{
	(void)state;
	assert_int_equal(JUDGED(50, 0, 100, 150), GROWTH_WITHIN);
	assert_int_equal(JUDGED(49, 0, 100, 150), GROWTH_ABOVE);
	assert_int_equal(JUDGED(49, 0, 150, 100), GROWTH_WITHIN);
	/* 5 bytes a second */
	assert_int_equal(JUDGED(5, 1, 100, 150), GROWTH_WITHIN);
	assert_int_equal(JUDGED(4, 1, 100, 150), GROWTH_ABOVE);
	assert_int_equal(JUDGED(299, 60, 100, 150, 200), GROWTH_ABOVE);
	assert_int_equal(JUDGED(301, 60, 100, 150, 200), GROWTH_WITHIN);
	/* A step is no rate, and noise is none. */
	assert_int_equal(JUDGED(1, 1, 100, 200, 200, 200), GROWTH_NO_RATE);
	assert_int_equal(JUDGED(1, 1, 100, 300, 120, 250), GROWTH_NO_RATE);
	assert_int_equal(JUDGED(100, 0, 100, 300, 120, 250), GROWTH_ABOVE);
}

/* ------------------------------------------------------------- files -- */

static char *written(const struct look *l)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_int_equal(look_write(l, f), 0);
	fclose(f);
	return text;
}

static char *example(void)
{
	struct look l;
	struct look_line *var;
	char *text;

	look_begin(&l, 7);
	var = below(l.all, RETAINED_HOLDER, "g_\"v\"\\", 0, 0);
	var->source = copy("a.c");
	var->line = 12;
	below(below(var, RETAINED_BLOCKS, "session", 3, 72), RETAINED_BLOCKS, "text", 2, 40);
	look_end(&l);
	assert_int_equal(vec_push(&l.types, ((struct look_type){copy(""), NULL, 40, 2, 80})), 0);
	assert_int_equal(vec_push(&l.modules, ((struct look_module){copy("libx.so"), NULL})), 0);
	text = written(&l);
	look_free(&l);
	return text;
}

static void test_file(void **state)
{
	char *text = example(), *again;
	struct mp_err err;
	struct look l;

	(void)state;
	assert_int_equal(look_parse(&l, text, "f", &err), 0);
	assert_string_equal(l.all->child->name, "g_\"v\"\\");
	assert_int_equal(l.all->bytes, 3 * 72 + 2 * 40);
	again = written(&l);
	assert_string_equal(text, again);
	look_free(&l);
	free(text);
	free(again);
}

/* Every truncation and every changed digit of a sum is noticed; nothing crashes. */
static void test_damaged(void **state)
{
	char *text = example(), *bytes = strstr(text, "\"retained_bytes\":");
	struct mp_err err;
	struct look l;
	size_t n = strlen(text);

	(void)state;
	for (size_t i = 0; i < n - 2; i++) {
		char *cut = strndup(text, i);

		err.what[0] = 0;
		assert_true(look_parse(&l, cut, "f", &err) < 0);
		assert_true(err.what[0] && err.exit == MP_EXIT_USAGE);
		look_free(&l);
		free(cut);
	}
	bytes += strlen("\"retained_bytes\":");
	bytes[0]++;
	assert_int_equal(look_parse(&l, text, "f", &err), -EINVAL);
	assert_string_equal(err.what,
			    "f is damaged: \"retained_bytes\" is missing, or contradicts the rest");
	look_free(&l);
	for (size_t i = 0; i < n; i++) {
		char was = text[i];

		for (const char *c = "\"{}[]:,-1ex"; *c; c++) {
			text[i] = *c;
			look_parse(&l, text, "f", &err);
			look_free(&l);
		}
		text[i] = was;
	}
	free(text);
}

static void test_hostile(void **state)
{
	const size_t n = 1 << 20;
	char *deep = malloc(n + 1);
	struct mp_err err;
	struct look l;

	(void)state;
	memset(deep, '[', n);
	memcpy(deep, "{\"memprof_heap_look\":1,\"retained\":", 33);
	deep[n] = 0;
	assert_int_equal(look_parse(&l, deep, "f", &err), -EINVAL);
	look_free(&l);
	free(deep);
	assert_int_equal(look_parse(&l, "{\"memprof_heap_look\":2}", "f", &err), -EINVAL);
	assert_non_null(strstr(err.what, "another version"));
	look_free(&l);
	assert_int_equal(look_parse(&l, "{\"memprof_version\":\"0.2\"}", "f", &err), -EINVAL);
	assert_non_null(strstr(err.what, "is not a look"));
	look_free(&l);
	assert_true(look_read(&l, "/", &err) < 0);
	look_free(&l);
	assert_true(look_read(&l, "/nonexistent", &err) < 0);
	look_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_looks),	 cmocka_unit_test(test_steady),
	    cmocka_unit_test(test_not_steady),	 cmocka_unit_test(test_error),
	    cmocka_unit_test(test_presence),	 cmocka_unit_test(test_extremes),
	    cmocka_unit_test(test_names),	 cmocka_unit_test(test_table_doubles),
	    cmocka_unit_test(test_kinds),	 cmocka_unit_test(test_types),
	    cmocka_unit_test(test_new_and_rest), cmocka_unit_test(test_builds),
	    cmocka_unit_test(test_refused),	 cmocka_unit_test(test_budget),
	    cmocka_unit_test(test_file),	 cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
