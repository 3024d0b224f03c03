/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every thread has a number of its own and keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "record/thread_numbers.h"

#define THREADS 20000u

static uint32_t number(struct thread_numbers *t, uint32_t tid)
{
	uint32_t n = UINT32_MAX;

	assert_int_equal(thread_number(t, tid, &n), 0);
	return n;
}

static void in_the_order_in_which_they_come(void **state)
{
	struct thread_numbers t = {0};

	(void)state;
	assert_int_equal(thread_numbers_init(&t), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(number(&t, i * 7), i);
	for (uint32_t i = THREADS; i--;)
		assert_int_equal(number(&t, i * 7), i);
	assert_int_equal(t.n, THREADS);
	thread_numbers_free(&t);
}

/* The id of a thread that is not known is 0. */
static void extreme_ids(void **state)
{
	struct thread_numbers t = {0};

	(void)state;
	assert_int_equal(thread_numbers_init(&t), 0);
	assert_int_equal(number(&t, UINT32_MAX), 0);
	assert_int_equal(number(&t, 0), 1);
	assert_int_equal(number(&t, 0), 1);
	assert_int_equal(number(&t, UINT32_MAX), 0);
	thread_numbers_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(in_the_order_in_which_they_come),
	    cmocka_unit_test(extreme_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
