/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rows of tables, with numbers that are calculated by hand. */
#include "model/filter/pattern.h"
#include "two_looks.h"

/* What a test expects of a row. */
struct want {
	uint32_t stack, stacks; /* stack: the one with the most live bytes */
	uint64_t live_bytes, live_blocks;
	double growth, allocations, allocated_bytes;
	double temporary;
	uint64_t total_allocations, total_bytes;
};

static void near(double is, double want)
{
	if (is < want - 1e-9 || is > want + 1e-9)
		fail_msg("%g is not %g", is, want);
}

static void check_row(const struct table_row *r, const struct want *w)
{
	assert_int_equal(r->stack, w->stack);
	assert_int_equal(r->stacks, w->stacks);
	assert_int_equal(r->tid, 0);
	assert_int_equal(r->live_bytes, w->live_bytes);
	assert_int_equal(r->live_blocks, w->live_blocks);
	near(r->growth, w->growth);
	near(r->allocations, w->allocations);
	near(r->allocated_bytes, w->allocated_bytes);
	near(r->temporary, w->temporary);
	assert_int_equal(r->total_allocations, w->total_allocations);
	assert_int_equal(r->total_bytes, w->total_bytes);
}

static void check_rows(const struct table *t, const struct want *w, uint32_t n)
{
	assert_int_equal(t->rows.n, n);
	for (uint32_t i = 0; i < n; i++)
		check_row(&t->rows.at[i], &w[i]);
}

static void test_by(void **state)
{
	static const struct want line[] = {{6, 1, 600, 6, 300, 3, 1500, 0.5, 6, 3000},
					   {1, 2, 500, 5, 100, 10, 1000, 0.5, 50, 5000},
					   {4, 1, 400, 4, -300, 0, 0, 0.9, 100, 10000},
					   {5, 1, 40, 7, 0, 2, 20, 0.25, 8, 80},
					   {3, 1, 0, 0, -25, 0, 0, 0, 5, 500}},
				 function[] = {{6, 2, 640, 13, 300, 5, 1520, 0.4, 14, 3080},
					       {1, 3, 500, 5, 75, 10, 1000, 0.5, 55, 5500},
					       {4, 1, 400, 4, -300, 0, 0, 0.9, 100, 10000}},
				 library[] = {{6, 3, 1040, 17, 0, 5, 1520, 0.4, 114, 13080},
					      {1, 3, 500, 5, 75, 10, 1000, 0.5, 55, 5500}},
				 stacks[] = {{6, 1, 600, 6, 300, 3, 1500, 0.5, 6, 3000},
					     {4, 1, 400, 4, -300, 0, 0, 0.9, 100, 10000},
					     {1, 1, 300, 3, 100, 10, 1000, 0.5, 30, 3000},
					     {2, 1, 200, 2, 0, 0, 0, 0.2, 20, 2000},
					     {5, 1, 40, 7, 0, 2, 20, 0.25, 8, 80},
					     {3, 1, 0, 0, -25, 0, 0, 0, 5, 500}},
				 sum = {0, 6, 1540, 22, 75, 15, 2520, 14.0 / 30, 169, 18580};
	static const struct {
		const struct want *rows;
		uint32_t n;
	} want[] = {[TABLE_LINE] = {line, N(line)},
		    [TABLE_FUNCTION] = {function, N(function)},
		    [TABLE_LIBRARY] = {library, N(library)},
		    [TABLE_STACK] = {stacks, N(stacks)}};
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	for (uint32_t by = 0; by < N(want); by++) {
		struct table t;

		if (by == TABLE_THREAD)
			continue;
		make(&m, &p, (struct table_view){.by = (enum table_by)by}, &t);
		check_rows(&t, want[by].rows, want[by].n);
		check_row(&t.sum, &sum);
		assert_string_equal(t.sum.at.function, "");
		assert_int_equal(t.left_out, 0);
		assert_true(t.has_live);
		table_free(&t);
		assert_int_equal(t.rows.n, 0);
	}
	end(&m, &p);
}

static void test_frames(void **state)
{
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	set(&m, 0, 1, 1, 1, 1, 0);
	make(&m, &p, (struct table_view){.by = TABLE_LINE}, &t);
	assert_int_equal(t.rows.n, 6);
	assert_string_equal(t.rows.at[0].at.function, "parse");
	assert_null(t.rows.at[0].at.source);
	assert_string_equal(t.rows.at[0].at.library, "app");
	assert_int_equal(t.rows.at[0].at.address, 0x1040);
	assert_string_equal(t.rows.at[1].at.source, "/src/parse.c");
	assert_int_equal(t.rows.at[1].at.line, 10);
	assert_string_equal(t.rows.at[1].at.library, "libparse.so");
	assert_string_equal(t.rows.at[2].at.function, "load");
	assert_string_equal(t.rows.at[2].at.raw_function, "_Z4loadi");
	assert_string_equal(t.rows.at[4].at.function, "(no stack)");
	assert_int_equal(t.rows.at[4].stack, 0);
	table_free(&t);
	end(&m, &p);
}

/* The rates are those since the oldest of the last looks. */
static void test_rates(void **state)
{
	static const struct want first = {1, 1, 100, 1, 0, 0, 0, 0.2, 10, 1000},
				 second = {1, 1, 110, 1, 5, 0.5, 50, 1, 11, 1100},
				 same_time = {1, 1, 150, 1, 25, 2.5, 250, 0.8, 15, 1500},
				 last = {1, 1, 180, 1, 2, 0.2, 20, 1, 18, 1800};
	struct past p = {0};
	struct table t;
	struct model m;

	(void)state;
	begin(&m);
	set(&m, 1, 100, 1, 10, 1000, 2);
	set(&m, 3, 0, 0, 5, 500, 0);
	look(&p, &m, SECOND);
	make(&m, &p, (struct table_view){0}, &t);
	check_rows(&t, &first, 1);
	check_row(&t.sum, &(struct want){0, 1, 100, 1, 0, 0, 0, 0.2, 10, 1000});
	table_free(&t);

	/* Three blocks were freed, of which two had been allocated before. */
	set(&m, 1, 110, 1, 11, 1100, 5);
	look(&p, &m, 3 * SECOND);
	make(&m, &p, (struct table_view){0}, &t);
	check_rows(&t, &second, 1);
	table_free(&t);

	set(&m, 1, 150, 1, 15, 1500, 6);
	look(&p, &m, 3 * SECOND);
	make(&m, &p, (struct table_view){0}, &t);
	check_rows(&t, &same_time, 1);
	table_free(&t);

	set(&m, 1, 160, 1, 16, 1600, 7);
	for (uint64_t i = 4; i <= 9; i++)
		look(&p, &m, i * SECOND);
	set(&m, 1, 170, 1, 17, 1700, 8);
	look(&p, &m, 10 * SECOND);
	set(&m, 1, 180, 1, 18, 1800, 9);
	look(&p, &m, 15 * SECOND);
	/* 6 looks are those at 6, 7, 8, 9, 10 and 15 seconds: 20 bytes in 9 seconds. */
	make(&m, &p, (struct table_view){0}, &t);
	assert_int_equal(t.rows.n, 1);
	near(t.rows.at[0].growth, 20.0 / 9);
	table_free(&t);
	look(&p, &m, 17 * SECOND);
	look(&p, &m, 18 * SECOND);
	look(&p, &m, 19 * SECOND);
	/* From 9 to 19 seconds. */
	make(&m, &p, (struct table_view){0}, &t);
	check_rows(&t, &last, 1);
	table_free(&t);
	end(&m, &p);
}

static void test_since_mark(void **state)
{
	static const int64_t since[] = {600, 200, -600, 0, -50};
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	make(&m, &p, (struct table_view){0}, &t);
	for (uint32_t i = 0; i < t.rows.n; i++)
		assert_int_equal(t.rows.at[i].since_mark, 0);
	assert_int_equal(t.sum.since_mark, 0);
	table_free(&t);
	state_1(&m);
	set(&m, 6, 0, 0, 0, 0, 0);
	assert_int_equal(past_mark(&p, &m), 0);
	state_2(&m);
	make(&m, &p, (struct table_view){0}, &t);
	assert_int_equal(t.rows.n, N(since));
	for (uint32_t i = 0; i < N(since); i++)
		assert_int_equal(t.rows.at[i].since_mark, since[i]);
	assert_int_equal(t.sum.since_mark, 150);
	table_free(&t);
	end(&m, &p);
}

static void test_idle(void **state)
{
	static const uint32_t without[] = {6, 1, 4, 5}, with[] = {6, 1, 4, 5, 3};
	struct pattern *none;
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	assert_int_equal(pattern_new("filter", "nothing", &none, NULL), 0);
	two_looks(&m, &p);
	for (uint64_t i = 4; i <= 8; i++)
		look(&p, &m, i * SECOND);
	make(&m, &p, (struct table_view){0}, &t);
	check_order(&t, without, N(without));
	assert_int_equal(t.sum.total_allocations, 164);
	table_free(&t);
	make(&m, &p, (struct table_view){.filter = none}, &t);
	assert_int_equal(t.left_out, 4);
	table_free(&t);

	/* A block that was freed at once was something; one of no bytes is live. */
	set(&m, 3, 0, 0, 6, 500, 0);
	look(&p, &m, 9 * SECOND);
	make(&m, &p, (struct table_view){0}, &t);
	check_order(&t, with, N(with));
	table_free(&t);
	for (uint64_t i = 10; i <= 14; i++)
		look(&p, &m, i * SECOND);
	m.sums.group[3].live_blocks = 1;
	make(&m, &p, (struct table_view){0}, &t);
	check_order(&t, with, N(with));
	table_free(&t);
	m.sums.group[3].live_blocks = 0;
	make(&m, &p, (struct table_view){0}, &t);
	check_order(&t, without, N(without));
	table_free(&t);

	/* What was freed since the mark is still to be seen. */
	set(&m, 3, 1, 1, 6, 500, 0);
	assert_int_equal(past_mark(&p, &m), 0);
	set(&m, 3, 0, 0, 6, 500, 0);
	make(&m, &p, (struct table_view){0}, &t);
	check_order(&t, with, N(with));
	assert_int_equal(t.rows.at[4].since_mark, -1);
	table_free(&t);
	pattern_free(none);
	end(&m, &p);
}

static void test_temporary(void **state)
{
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	/* Carried over from an earlier recording. */
	set(&m, 2, 1000, 1, 0, 0, 0);
	make(&m, &p, (struct table_view){.by = TABLE_STACK}, &t);
	assert_int_equal(t.rows.at[0].stack, 2);
	near(t.rows.at[0].temporary, -1);
	near(t.rows.at[1].temporary, 0.5);
	table_free(&t);
	m.info.sample_interval = 1;
	make(&m, &p, (struct table_view){.by = TABLE_STACK}, &t);
	for (uint32_t i = 0; i < t.rows.n; i++)
		near(t.rows.at[i].temporary, -1);
	near(t.sum.temporary, -1);
	table_free(&t);
	end(&m, &p);
}

static void test_error(void **state)
{
	static const double want[] = {0, 5, 12, 0, 0};
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	m.sums.group[1].variance_live = 9;
	m.sums.group[2].variance_live = 16;
	m.sums.group[4].variance_live = 144;
	m.sums.group[5].variance_live = -1e-12;
	make(&m, &p, (struct table_view){0}, &t);
	assert_int_equal(t.rows.n, N(want));
	for (uint32_t i = 0; i < N(want); i++)
		near(t.rows.at[i].live_error, want[i]);
	near(t.sum.live_error, 13);
	table_free(&t);
	end(&m, &p);
}

/* Keys do not depend on what else is there, but for those of stacks. */
static void test_keys(void **state)
{
	uint64_t key[TABLE_BYS][2] = {0}, library;
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	set(&m, 3, 50, 1, 5, 500, 0);
	look(&p, &m, SECOND);
	for (uint32_t by = 0; by < TABLE_BYS; by++) {
		if (by != TABLE_THREAD)
			key[by][0] = key_of(&m, &p, (enum table_by)by, 3);
	}
	end(&m, &p);
	two_looks(&m, &p);
	set(&m, 3, 5000, 1, 5, 500, 0);
	for (uint32_t by = 0; by < TABLE_BYS; by++) {
		if (by == TABLE_THREAD)
			continue;
		key[by][1] = key_of(&m, &p, (enum table_by)by, 3);
		assert_int_equal(key[by][0], key[by][1]);
		for (uint32_t other = 0; other < by; other++)
			assert_int_not_equal(key[other][1], key[by][1]);
	}
	/* A library with the name of a stack. */
	module(&m, "/lib/3", 0x3000);
	symbol(&m, 0x3000, (struct mp_symbol){.function = "f"});
	stack(&m, 7, 0x3000, 0);
	set(&m, 7, 1, 1, 1, 1, 0);
	library = key_of(&m, &p, TABLE_LIBRARY, 7);
	assert_int_not_equal(library, key[TABLE_STACK][1]);
	end(&m, &p);
}

static void set_thread(struct model *m, uint32_t tid, uint64_t allocations,
		       uint64_t allocated_bytes, uint64_t temporary)
{
	struct model_thread *t = tasks_thread(&m->tasks, tid);

	assert_non_null(t);
	t->allocations = allocations;
	t->allocated_bytes = allocated_bytes;
	t->temporary = temporary;
}

static void check_thread(const struct table_row *r, uint32_t tid, const char *name,
			 const struct want *w)
{
	struct table_row row = *r;

	assert_int_equal(row.tid, tid);
	assert_string_equal(row.at.function, name);
	row.tid = 0;
	check_row(&row, w);
}

static void test_threads(void **state)
{
	static const struct want first[] = {{0, 0, 0, 0, 0, 0, 0, 0.3, 10, 1000},
					    {0, 0, 0, 0, 0, 0, 0, 0, 2, 20}},
				 second[] = {{0, 0, 0, 0, 0, 10, 500, 0.25, 30, 2000},
					     {0, 0, 0, 0, 0, 2, 1500, 0.5, 4, 3000}},
				 sum = {0, 0, 0, 0, 0, 12, 2000, 7.0 / 24, 34, 5000};
	struct table_view v = {.by = TABLE_THREAD, .sort = TABLE_ALLOCATIONS};
	struct past p = {0};
	uint64_t key;
	struct table t;
	struct model m;

	(void)state;
	begin(&m);
	thread(&m, 70, "main");
	set_thread(&m, 70, 10, 1000, 3);
	set_thread(&m, 71, 2, 20, 0);
	set_thread(&m, 72, 0, 0, 0);
	look(&p, &m, SECOND);
	/* Without a span, those that ever allocated. */
	v.sort = TABLE_TEMPORARY;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.n, 2);
	assert_false(t.has_live);
	check_thread(&t.rows.at[0], 70, "main", &first[0]);
	check_thread(&t.rows.at[1], 71, "thread 71", &first[1]);
	key = t.rows.at[0].key;
	assert_int_not_equal(key, t.rows.at[1].key);
	table_free(&t);

	/* 71 does nothing more; 73 is new. */
	set_thread(&m, 70, 30, 2000, 8);
	set_thread(&m, 73, 4, 3000, 2);
	look(&p, &m, 3 * SECOND);
	v.sort = TABLE_ALLOCATIONS;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.n, 2);
	check_thread(&t.rows.at[0], 70, "main", &second[0]);
	check_thread(&t.rows.at[1], 73, "thread 73", &second[1]);
	check_row(&t.sum, &sum);
	assert_int_equal(t.rows.at[0].key, key);
	table_free(&t);
	v.sort = TABLE_ALLOCATED;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.at[0].tid, 73);
	table_free(&t);
	v.sort = TABLE_NAME;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.at[0].tid, 70);
	table_free(&t);
	end(&m, &p);
}

static void test_thread_filter(void **state)
{
	struct table_view v = {.by = TABLE_THREAD};
	struct pattern *filter;
	struct past p = {0};
	struct table t;
	struct model m;

	(void)state;
	begin(&m);
	thread(&m, 70, "main");
	set_thread(&m, 70, 1, 1, 0);
	set_thread(&m, 71, 1, 1, 0);
	look(&p, &m, SECOND);
	assert_int_equal(pattern_new("filter", "71", &filter, NULL), 0);
	v.filter = filter;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.n, 1);
	assert_int_equal(t.rows.at[0].tid, 71);
	assert_int_equal(t.left_out, 1);
	table_free(&t);
	pattern_free(filter);
	end(&m, &p);
}

static void test_empty(void **state)
{
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	for (uint32_t by = 0; by < TABLE_BYS; by++) {
		struct table t;

		make(&m, &p, (struct table_view){.by = (enum table_by)by}, &t);
		assert_int_equal(t.rows.n, 0);
		near(t.sum.temporary, -1);
		near(t.sum.growth, 0);
		assert_int_equal(table_find(&t, 0), 0);
		table_free(&t);
	}
	end(&m, &p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by),	    cmocka_unit_test(test_frames),
	    cmocka_unit_test(test_rates),   cmocka_unit_test(test_since_mark),
	    cmocka_unit_test(test_idle),    cmocka_unit_test(test_temporary),
	    cmocka_unit_test(test_error),   cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_threads), cmocka_unit_test(test_thread_filter),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
