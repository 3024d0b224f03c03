/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which rows of a table a view shows, and in which order. */
#include <errno.h>
#include "model/filter/pattern.h"
#include "two_looks.h"

static void test_filter(void **state)
{
	static const struct {
		const char *text;
		enum table_by by;
		uint32_t n, stack[5], left_out;
		uint64_t live_bytes; /* of all */
	} of[] = {
	    {"^load$", TABLE_LINE, 1, {4}, 4, 400},
	    {"^_Z4", TABLE_LINE, 1, {4}, 4, 400},
	    {"src/parse", TABLE_LINE, 2, {1, 3}, 3, 500},
	    {"^app$", TABLE_LINE, 3, {6, 4, 5}, 2, 1040},
	    {"a", TABLE_LINE, 5, {6, 1, 4, 5, 3}, 0, 1540},
	    {"nothing", TABLE_LINE, 0, {0}, 5, 0},
	    {"^parse", TABLE_FUNCTION, 2, {6, 1}, 1, 1140},
	    {"^lib", TABLE_LIBRARY, 1, {1}, 1, 500},
	    {"^parse", TABLE_LIBRARY, 0, {0}, 2, 0},
	    {"[.]c", TABLE_STACK, 4, {4, 1, 2, 3}, 2, 900},
	};
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	for (uint32_t i = 0; i < N(of); i++) {
		struct pattern *filter;
		struct table t;

		assert_int_equal(pattern_new("filter", of[i].text, &filter, NULL), 0);
		make(&m, &p, (struct table_view){.by = of[i].by, .filter = filter}, &t);
		check_order(&t, of[i].stack, of[i].n);
		assert_int_equal(t.left_out, of[i].left_out);
		assert_int_equal(t.sum.live_bytes, of[i].live_bytes);
		table_free(&t);
		pattern_free(filter);
	}
	end(&m, &p);
}

static void test_dear_filter(void **state)
{
	static char name[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
	struct pattern *filter;
	struct mp_err err = {0};
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	symbol(&m, 0x1050, (struct mp_symbol){.function = name});
	stack(&m, 7, 0x1050, 0);
	set(&m, 7, 1, 1, 1, 1, 0);
	assert_int_equal(pattern_new("filter", "(a|aa)+$", &filter, NULL), 0);
	assert_int_equal(table_make(&m, &p, &(struct table_view){.filter = filter}, &t, &err),
			 -E2BIG);
	assert_non_null(strstr(err.what, name));
	assert_int_equal(t.rows.n, 0);
	assert_int_equal(t.left_out, 0);
	pattern_free(filter);
	end(&m, &p);
}

static void test_within(void **state)
{
	static const struct {
		enum table_by of;
		uint32_t in; /* the stack with the most of the row that the view is limited to */
		enum table_by by;
		uint32_t n, stack[4];
		uint64_t live_bytes;
	} want[] = {
	    {TABLE_LIBRARY, 1, TABLE_STACK, 3, {1, 2, 3}, 500},
	    {TABLE_LIBRARY, 6, TABLE_LINE, 3, {6, 4, 5}, 1040},
	    {TABLE_LIBRARY, 6, TABLE_FUNCTION, 2, {6, 4}, 1040},
	    {TABLE_FUNCTION, 1, TABLE_LINE, 2, {1, 3}, 500},
	    {TABLE_FUNCTION, 6, TABLE_STACK, 2, {6, 5}, 640},
	    {TABLE_LINE, 1, TABLE_STACK, 2, {1, 2}, 500},
	    {TABLE_LINE, 3, TABLE_LIBRARY, 1, {3}, 0},
	    {TABLE_STACK, 2, TABLE_LINE, 1, {2}, 200},
	    {TABLE_STACK, 5, TABLE_FUNCTION, 1, {5}, 40},
	    {TABLE_LIBRARY, 1, TABLE_THREAD, 0, {0}, 0},
	};
	struct table_view v = {.within = true};
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	thread(&m, 70, "main");
	m.tasks.threads.at[0].allocations = 1;
	for (uint32_t i = 0; i < N(want); i++) {
		v.by = want[i].by;
		v.of = want[i].of;
		v.key = key_of(&m, &p, v.of, want[i].in);
		make(&m, &p, v, &t);
		check_order(&t, want[i].stack, want[i].n);
		assert_int_equal(t.sum.live_bytes, want[i].live_bytes);
		assert_int_equal(t.left_out, 0);
		table_free(&t);
	}
	/* The row is gone, or the key is that of another kind of row. */
	v.of = v.by = TABLE_LINE;
	make(&m, &p, v, &t);
	assert_int_equal(t.rows.n, 0);
	table_free(&t);
	end(&m, &p);
}

static void test_sort(void **state)
{
	static const uint32_t want[TABLE_SORTS][2][5] = {
	    [TABLE_LIVE] = {{6, 1, 4, 5, 3}, {3, 5, 4, 1, 6}},
	    [TABLE_BLOCKS] = {{5, 6, 1, 4, 3}, {3, 4, 1, 6, 5}},
	    [TABLE_GROWTH] = {{6, 1, 5, 3, 4}, {4, 3, 5, 1, 6}},
	    [TABLE_SINCE_MARK] = {{6, 1, 4, 3, 5}, {5, 3, 4, 1, 6}},
	    [TABLE_ALLOCATIONS] = {{1, 6, 5, 4, 3}, {4, 3, 5, 6, 1}},
	    [TABLE_ALLOCATED] = {{6, 1, 5, 4, 3}, {4, 3, 5, 1, 6}},
	    [TABLE_TEMPORARY] = {{4, 6, 1, 5, 3}, {3, 5, 6, 1, 4}},
	    [TABLE_NAME] = {{4, 6, 5, 1, 3}, {3, 1, 6, 5, 4}},
	};
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	set(&m, 5, 1000, 1, 1, 1000, 0);
	assert_int_equal(past_mark(&p, &m), 0);
	state_1(&m);
	look(&p, &m, SECOND);
	state_2(&m);
	look(&p, &m, 3 * SECOND);
	for (uint32_t sort = 0; sort < TABLE_SORTS; sort++) {
		for (uint32_t reverse = 0; reverse < 2; reverse++) {
			struct table_view v = {.sort = (enum table_sort)sort, .reverse = reverse};
			struct table t;

			make(&m, &p, v, &t);
			check_order(&t, want[sort][reverse], 5);
			table_free(&t);
		}
	}
	end(&m, &p);
}

/* By function, then source, then line. */
static void test_sort_names(void **state)
{
	static const uint32_t want[] = {4, 6, 5, 7, 1, 3};
	struct table t;
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	symbol(&m, 0x2020,
	       (struct mp_symbol){.function = "parse", .source = "/src/lexer.c", .line = 30});
	stack(&m, 7, 0x2020, 0);
	set(&m, 7, 1, 1, 1, 1, 0);
	make(&m, &p, (struct table_view){.sort = TABLE_NAME}, &t);
	check_order(&t, want, N(want));
	table_free(&t);
	end(&m, &p);
}

static void test_sort_libraries(void **state)
{
	static const uint32_t want[2][2] = {{6, 1}, {1, 6}}; /* app, libparse.so */
	struct model m;
	struct past p;

	(void)state;
	two_looks(&m, &p);
	set(&m, 1, 10000, 1, 1, 1, 1);
	for (uint32_t reverse = 0; reverse < 2; reverse++) {
		struct table_view v = {.by = TABLE_LIBRARY, .sort = TABLE_NAME, .reverse = reverse};
		struct table t;

		make(&m, &p, v, &t);
		check_order(&t, want[reverse], 2);
		table_free(&t);
	}
	end(&m, &p);
}

/* Rows that are equal do not change places, whatever the direction. */
static void test_ties(void **state)
{
	static const uint32_t first[] = {1, 5, 4};
	struct past p = {0};
	struct table functions;
	struct model m;

	(void)state;
	begin(&m);
	for (uint32_t id = 1; id <= 6; id++)
		set(&m, id, 8, 1, 1, 8, 0);
	look(&p, &m, SECOND);
	for (uint32_t reverse = 0; reverse < 2; reverse++) {
		struct table_view v = {.by = TABLE_STACK, .sort = TABLE_BLOCKS, .reverse = reverse};
		struct table t;

		make(&m, &p, v, &t);
		assert_int_equal(t.rows.n, 6);
		for (uint32_t i = 1; i < t.rows.n; i++)
			assert_true(t.rows.at[i - 1].key < t.rows.at[i].key);
		table_free(&t);
	}
	/* Of stacks with the same live bytes, row.stack is the first one. */
	make(&m, &p, (struct table_view){.by = TABLE_FUNCTION}, &functions);
	check_order(&functions, first, N(first));
	table_free(&functions);
	end(&m, &p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_filter),     cmocka_unit_test(test_dear_filter),
	    cmocka_unit_test(test_within),     cmocka_unit_test(test_sort),
	    cmocka_unit_test(test_sort_names), cmocka_unit_test(test_sort_libraries),
	    cmocka_unit_test(test_ties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
