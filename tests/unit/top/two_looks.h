/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two looks at a model made by hand, and tables of them. */
#ifndef TESTS_TWO_LOOKS_H
#define TESTS_TWO_LOOKS_H

#include "hand.h"
#include "top/table.h"

#define N(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

static void check_order(const struct table *t, const uint32_t *stacks, uint32_t n)
{
	assert_int_equal(t->rows.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(t->rows.at[i].stack, stacks[i]);
}

static void make(struct model *m, const struct past *p, struct table_view v, struct table *t)
{
	assert_int_equal(table_make(m, p, &v, t, NULL), 0);
}

static void state_1(struct model *m)
{
	set(m, 1, 100, 1, 10, 1000, 2);
	set(m, 2, 200, 2, 20, 2000, 4);
	set(m, 3, 50, 1, 5, 500, 0);
	set(m, 4, 1000, 10, 100, 10000, 90);
	set(m, 5, 40, 4, 4, 40, 4);
}

/* Stack 3 has nothing any more, and 6 is new. */
static void state_2(struct model *m)
{
	set(m, 1, 300, 3, 30, 3000, 12);
	set(m, 3, 0, 0, 5, 500, 0);
	set(m, 4, 400, 4, 100, 10000, 90);
	set(m, 5, 40, 7, 8, 80, 5);
	set(m, 6, 600, 6, 6, 3000, 3);
}

/* Two looks, two seconds apart. */
static void two_looks(struct model *m, struct past *p)
{
	*p = (struct past){0};
	begin(m);
	state_1(m);
	look(p, m, SECOND);
	state_2(m);
	look(p, m, 3 * SECOND);
}

static void end(struct model *m, struct past *p)
{
	past_free(p);
	model_free(m);
}

/* Return: the key of the row with @stack. */
static uint64_t key_of(struct model *m, const struct past *p, enum table_by by, uint32_t stack)
{
	struct table t;
	uint64_t key = 0;

	make(m, p, (struct table_view){.by = by}, &t);
	for (uint32_t i = 0; i < t.rows.n; i++) {
		if (t.rows.at[i].stack == stack) {
			key = t.rows.at[i].key;
			assert_int_equal(table_find(&t, key), i);
		}
	}
	assert_int_not_equal(key, 0);
	assert_int_equal(table_find(&t, key + 1), t.rows.n);
	table_free(&t);
	return key;
}

#endif
