/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which columns a terminal shows, and that they fit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "top/columns.h"

static bool has(const struct columns *c, enum column what)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->at[i].what == what)
			return true;
	}
	return false;
}

static struct columns chosen(struct columns_for f, uint32_t width)
{
	struct columns c;

	columns_choose(&f, width, &c);
	return c;
}

static void test_they_fit(void **state)
{
	(void)state;
	for (uint32_t width = 40; width <= 400; width++) {
		for (int k = 0; k < TABLE_SORTS * TABLE_BYS * 4; k++) {
			const struct columns_for f = {(enum table_by)(k / 4 % TABLE_BYS),
						      (enum table_sort)(k / 4 / TABLE_BYS), k & 1,
						      k & 2};
			struct columns c = chosen(f, width);
			uint32_t from = 0;

			assert_true(has(&c, COLUMN_LIVE) && has(&c, COLUMN_SITE));
			assert_true(has(&c, columns_sorted(f.sort)));
			for (uint32_t i = 0; i < c.n; i++) {
				assert_int_equal(c.at[i].from, from);
				assert_true(c.at[i].width > 0);
				assert_true(!i || c.at[i].what > c.at[i - 1].what);
				from += c.at[i].width + 1;
			}
			/* The last one ends at the edge. */
			assert_int_equal(from - 1, width);
		}
	}
}

static void test_small(void **state)
{
	struct columns c = chosen((struct columns_for){.by = TABLE_LINE}, 80);

	(void)state;
	assert_true(has(&c, COLUMN_BLOCKS) && has(&c, COLUMN_TEMPORARY));
	assert_false(has(&c, COLUMN_SINCE_MARK) || has(&c, COLUMN_SOURCE));
	/* Growth since the mark, once there is one, matters more than the number of blocks. */
	c = chosen((struct columns_for){.by = TABLE_LINE, .marked = true}, 80);
	assert_true(has(&c, COLUMN_SINCE_MARK) && has(&c, COLUMN_GROWTH));
	assert_false(has(&c, COLUMN_BLOCKS));
}

static void test_wide(void **state)
{
	struct columns c = chosen((struct columns_for){.by = TABLE_LINE, .estimated = true}, 300);

	(void)state;
	assert_int_equal(c.n, COLUMN_KINDS);
	c = chosen((struct columns_for){.by = TABLE_LINE}, 300);
	assert_false(has(&c, COLUMN_ERROR));
	c = chosen((struct columns_for){.by = TABLE_LIBRARY}, 300);
	assert_false(has(&c, COLUMN_SOURCE) || has(&c, COLUMN_LIBRARY));
	c = chosen((struct columns_for){.by = TABLE_STACK}, 300);
	assert_false(has(&c, COLUMN_STACKS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_they_fit),
					   cmocka_unit_test(test_small),
					   cmocka_unit_test(test_wide)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
