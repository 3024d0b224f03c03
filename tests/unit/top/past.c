/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which moments are kept, and what they have. */
#include "hand.h"

static void test_none(void **state)
{
	struct past p = {0};

	(void)state;
	assert_null(past_first(&p));
	assert_true(past_span(&p) == 0);
	assert_false(p.marked);
	past_free(&p);
}

static void test_moments(void **state)
{
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	thread(&m, 70, "main");
	for (uint64_t i = 1; i <= 9; i++) {
		set(&m, 1, 100 * i, i, 10 * i, 1000 * i, 2 * i);
		m.tasks.threads.at[0].allocations = 3 * i;
		m.tasks.threads.at[0].live_bytes = 1;
		m.sums.total = m.sums.group[1];
		look(&p, &m, i * SECOND);
		assert_int_equal(p.n, i);
		if (i == 1) {
			assert_null(past_first(&p));
			assert_true(past_span(&p) == 0);
			continue;
		}
		/* Up to 6 moments: 5 seconds. */
		assert_int_equal(past_first(&p)->time_ns, (i <= 6 ? 1 : i - 5) * SECOND);
		assert_true(past_span(&p) == (i <= 6 ? (double)i - 1 : 5));
	}
	/* That of i = 4. */
	assert_int_equal(past_stack(past_first(&p), 1).live_bytes, 400);
	assert_int_equal(past_stack(past_first(&p), 1).allocations, 40);
	assert_int_equal(past_stack(past_first(&p), 1).allocated_bytes, 4000);
	assert_int_equal(past_stack(past_first(&p), 1).temporary, 8);
	assert_int_equal(past_stack(past_first(&p), 2).allocations, 0);
	assert_int_equal(past_stack(past_first(&p), UINT32_MAX).allocations, 0);
	assert_int_equal(past_thread(past_first(&p), 0).allocations, 12);
	assert_int_equal(past_thread(past_first(&p), 0).live_bytes, 0);
	assert_int_equal(past_thread(past_first(&p), 1).allocations, 0);
	assert_int_equal(past_first(&p)->total.allocated_bytes, 4000);
	past_free(&p);
	assert_null(past_first(&p));
	model_free(&m);
}

static void test_same_time(void **state)
{
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	set(&m, 1, 10, 1, 1, 10, 0);
	look(&p, &m, SECOND);
	set(&m, 1, 20, 2, 2, 20, 0);
	look(&p, &m, SECOND);
	assert_int_equal(p.n, 1);
	assert_null(past_first(&p));
	look(&p, &m, SECOND * 3 / 2);
	assert_int_equal(p.n, 2);
	assert_int_equal(past_stack(past_first(&p), 1).live_bytes, 20);
	assert_true(past_span(&p) == 0.5);
	look(&p, &m, SECOND / 2);
	assert_int_equal(p.n, 2);
	assert_int_equal(past_first(&p)->time_ns, SECOND);
	assert_true(past_span(&p) == 0);
	past_free(&p);
	model_free(&m);
}

/* Stacks and threads that are new had nothing before. */
static void test_later(void **state)
{
	struct past p = {0};
	struct model m;
	uint32_t late;

	(void)state;
	begin(&m);
	look(&p, &m, SECOND);
	late = m.stacks.n;
	stack(&m, late, 0x2000, 0);
	set(&m, late, 7, 1, 1, 7, 0);
	thread(&m, 71, "late");
	m.tasks.threads.at[0].allocations = 1;
	look(&p, &m, 2 * SECOND);
	assert_int_equal(past_stack(past_first(&p), late).live_bytes, 0);
	assert_int_equal(past_stack(&p.at[1], late).live_bytes, 7);
	assert_int_equal(past_thread(past_first(&p), 0).allocations, 0);
	assert_int_equal(past_thread(&p.at[1], 0).allocations, 1);
	past_free(&p);
	model_free(&m);
}

static void test_mark(void **state)
{
	struct past p = {0};
	struct model m;

	(void)state;
	begin(&m);
	set(&m, 3, 30, 1, 1, 30, 0);
	m.facts.end_ns = SECOND;
	assert_int_equal(past_mark(&p, &m), 0);
	assert_true(p.marked);
	assert_int_equal(p.n, 0);
	for (uint64_t i = 2; i < 12; i++)
		look(&p, &m, i * SECOND);
	assert_int_equal(p.mark.time_ns, SECOND);
	assert_int_equal(past_stack(&p.mark, 3).live_bytes, 30);
	set(&m, 3, 50, 1, 1, 50, 0);
	assert_int_equal(past_mark(&p, &m), 0);
	assert_int_equal(p.mark.time_ns, 11 * SECOND);
	assert_int_equal(past_stack(&p.mark, 3).live_bytes, 50);
	past_free(&p);
	assert_false(p.marked);
	model_free(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_none),      cmocka_unit_test(test_moments),
	    cmocka_unit_test(test_same_time), cmocka_unit_test(test_later),
	    cmocka_unit_test(test_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
