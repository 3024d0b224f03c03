/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The selected row stays selected when rows move, come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "top/cursor.h"

#define ROWS 10

static struct table_row rows[ROWS];

/* Makes a table of rows with these keys, ended by 0. */
static struct table table(const uint64_t *keys)
{
	struct table t = {0};

	for (; keys[t.rows.n]; t.rows.n++)
		rows[t.rows.n].key = keys[t.rows.n];
	t.rows.at = rows;
	return t;
}

#define TABLE(...) table((const uint64_t[]){__VA_ARGS__, 0})

static void test_first_until_chosen(void **state)
{
	struct table t = TABLE(1, 2, 3);
	struct cursor c = {0};

	(void)state;
	cursor_follow(&c, &t);
	t = TABLE(3, 1, 2);
	cursor_follow(&c, &t);
	assert_int_equal(cursor_row(&c, &t)->key, 3);
}

static void test_follows(void **state)
{
	struct table t = TABLE(1, 2, 3);
	struct cursor c = {0};

	(void)state;
	cursor_follow(&c, &t);
	cursor_move(&c, &t, 1);
	t = TABLE(3, 1, 4, 2);
	cursor_follow(&c, &t);
	assert_int_equal(c.index, 3);
	assert_int_equal(cursor_row(&c, &t)->key, 2);
	/* Gone: the row that is now in its place. */
	t = TABLE(3, 1, 4, 5);
	cursor_follow(&c, &t);
	assert_int_equal(cursor_row(&c, &t)->key, 5);
	t = TABLE(3);
	cursor_follow(&c, &t);
	assert_int_equal(c.index, 0);
}

static void test_moves(void **state)
{
	struct table t = TABLE(1, 2, 3);
	struct cursor c = {0};

	(void)state;
	cursor_move(&c, &t, INT32_MAX);
	assert_int_equal(c.index, 2);
	assert_true(c.chosen);
	cursor_move(&c, &t, -1);
	assert_int_equal(c.key, 2);
	cursor_move(&c, &t, -INT32_MAX);
	assert_int_equal(c.index, 0);
	assert_false(c.chosen);
}

static void test_empty(void **state)
{
	struct table t = {0};
	struct cursor c = {.chosen = true, .index = 5, .first = 3, .key = 7};

	(void)state;
	cursor_follow(&c, &t);
	cursor_move(&c, &t, 3);
	cursor_scroll(&c, &t, 10);
	assert_null(cursor_row(&c, &t));
	assert_int_equal(c.index, 0);
	assert_int_equal(c.first, 0);
}

static void test_scrolls(void **state)
{
	struct table t = TABLE(1, 2, 3, 4, 5, 6, 7, 8);
	struct cursor c = {0};

	(void)state;
	cursor_move(&c, &t, 5);
	cursor_scroll(&c, &t, 3);
	assert_int_equal(c.first, 3);
	cursor_move(&c, &t, -4);
	cursor_scroll(&c, &t, 3);
	assert_int_equal(c.first, 1);
	/* A higher screen has room for more. */
	cursor_move(&c, &t, 6);
	cursor_scroll(&c, &t, 3);
	assert_int_equal(c.first, 5);
	cursor_scroll(&c, &t, 6);
	assert_int_equal(c.first, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_first_until_chosen),
	    cmocka_unit_test(test_follows),
	    cmocka_unit_test(test_moves),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_scrolls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
