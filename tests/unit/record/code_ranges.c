/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks get the addresses of the code that the process had at the time of the event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "formats/session.h"
#include "record/stacks/code_ranges.h"

#define START	0x7f0000001000ull
#define END	0x7f0000002000ull
#define OUTSIDE 0x400000ull
#define SECOND	(1ull << 48)
#define NS0	1000u

/* Ticks are nanoseconds since the start. */
static const struct clock clock0 = {.ns0 = NS0, .ns_per_tick = 1, .slope = 1};

static uint32_t flags;
static uint64_t pc[3];

static void change(struct code_ranges *r, uint64_t add, uint64_t since, uint64_t doubtful_until)
{
	const struct code_change c = {.start = START,
				      .end = END,
				      .add = add,
				      .since_ns = NS0 + since,
				      .doubtful_until_ns =
					  doubtful_until && doubtful_until != UINT64_MAX
					      ? NS0 + doubtful_until
					      : doubtful_until};

	assert_int_equal(code_ranges_add(r, &c, &clock0), 0);
}

static void trust(struct code_ranges *r, uint64_t add, uint64_t since)
{
	const struct code_change c = {
	    .start = START, .end = END, .add = add, .since_ns = NS0 + since, .is_trusted = true};

	assert_int_equal(code_ranges_add(r, &c, &clock0), 0);
}

static bool reach(struct code_ranges *r, uint64_t ticks)
{
	return r->due && ticks >= r->due && code_ranges_reach(r, ticks, &clock0);
}

/* Return: the number of frames of a stack with two frames in the range. */
static uint32_t apply(const struct code_ranges *r, bool by_agent)
{
	pc[0] = OUTSIDE;
	pc[1] = END; /* the return address of a call at the end */
	pc[2] = START | SS_PC_EXACT;
	flags = SS_STACK_COMPLETE;
	return code_ranges_apply(r, pc, 3, &flags, by_agent);
}

static void test_in_time(void **state)
{
	struct code_ranges r = {0};

	(void)state;
	assert_int_equal(apply(&r, true), 3);
	change(&r, SECOND, 100, 0);
	change(&r, 0, 200, 0);
	assert_false(reach(&r, 99));
	apply(&r, true);
	assert_int_equal(pc[1], END);
	assert_true(reach(&r, 100));
	assert_int_equal(apply(&r, true), 3);
	assert_int_equal(flags, SS_STACK_COMPLETE);
	assert_int_equal(pc[0], OUTSIDE);
	assert_int_equal(pc[1], END + SECOND);
	assert_true(pc[2] == ((START + SECOND) | SS_PC_EXACT));
	assert_true(reach(&r, 250));
	apply(&r, true);
	assert_int_equal(pc[1], END);
	assert_int_equal(r.due, 0);
	code_ranges_free(&r);
}

static void test_out_of_order(void **state)
{
	struct code_ranges r = {0};

	(void)state;
	change(&r, 2 * SECOND, 200, 0);
	change(&r, SECOND, 100, 0);
	assert_true(reach(&r, 150));
	apply(&r, true);
	assert_int_equal(pc[1], END + SECOND);
	assert_true(reach(&r, 200));
	apply(&r, true);
	assert_int_equal(pc[1], END + 2 * SECOND);
	code_ranges_free(&r);
}

static void test_doubtful(void **state)
{
	struct code_ranges r = {0};

	(void)state;
	change(&r, SECOND, 100, UINT64_MAX);
	assert_true(reach(&r, 100));
	assert_int_equal(apply(&r, true), 2);
	assert_int_equal(pc[1], END + SECOND);
	assert_int_equal(flags, SS_STACK_NO_TABLE);
	assert_int_equal(apply(&r, false), 3);
	assert_int_equal(flags, SS_STACK_COMPLETE);
	trust(&r, 0, 150); /* of the code that was there before */
	assert_false(reach(&r, 150));
	assert_int_equal(apply(&r, true), 2);
	trust(&r, SECOND, 160);
	assert_true(reach(&r, 160));
	assert_int_equal(apply(&r, true), 3);
	code_ranges_free(&r);
}

static void test_doubtful_for_a_time(void **state)
{
	struct code_ranges r = {0};

	(void)state;
	change(&r, 0, 100, 200);
	assert_true(reach(&r, 100));
	assert_int_equal(apply(&r, true), 2);
	assert_int_equal(pc[1], END);
	assert_true(reach(&r, 200));
	assert_int_equal(apply(&r, true), 3);
	assert_int_equal(r.due, 0);
	code_ranges_free(&r);
}

static void test_same_again(void **state)
{
	struct code_ranges r = {0};

	(void)state;
	change(&r, SECOND, 100, 0);
	assert_true(reach(&r, 100));
	change(&r, SECOND, 200, 0); /* protected anew, or loaded again */
	assert_false(reach(&r, 200));
	apply(&r, true);
	assert_int_equal(pc[1], END + SECOND);
	code_ranges_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_in_time),    cmocka_unit_test(test_out_of_order),
	    cmocka_unit_test(test_doubtful),   cmocka_unit_test(test_doubtful_for_a_time),
	    cmocka_unit_test(test_same_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
