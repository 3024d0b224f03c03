/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The shape of a curve of live bytes, and the levels that it is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "model/sums/shape.h"

#define N 64u

static enum growth shape(uint64_t (*level)(uint32_t i), uint32_t n)
{
	uint64_t v[N];

	for (uint32_t i = 0; i < n; i++)
		v[i] = level(i);
	return growth_of_curve(v, n);
}

static uint64_t linear(uint32_t i)
{
	return 1000 + 500 * (uint64_t)i;
}

static uint64_t noisy(uint32_t i)
{
	return linear(i) - (i % 3) * 400;
}

static uint64_t flat(uint32_t i)
{
	return i < 10 ? i * 100 : 1000 - i % 2 * 50;
}

static uint64_t once(uint32_t i)
{
	return i >= 20 && i < 30 ? 100000 : 10;
}

static uint64_t teeth(uint32_t i)
{
	return 100 + i % 12 * 100;
}

static uint64_t rising_teeth(uint32_t i)
{
	return i * 10 + i % 12 * 100;
}

static uint64_t doubling(uint32_t i)
{
	return 1ull << i / 8;
}

static uint64_t late_step(uint32_t i)
{
	return i < 50 ? 1000 : 9000;
}

static uint64_t nothing(uint32_t i)
{
	(void)i;
	return 0;
}

static void test_shapes(void **state)
{
	(void)state;
	assert_int_equal(shape(linear, N), GROWTH_GROWING);
	assert_int_equal(shape(noisy, N), GROWTH_GROWING);
	assert_int_equal(shape(flat, N), GROWTH_PLATEAU);
	assert_int_equal(shape(once, N), GROWTH_BURST);
	assert_int_equal(shape(teeth, N), GROWTH_SAWTOOTH);
	assert_int_equal(shape(rising_teeth, N), GROWTH_SAWTOOTH);
}

/* What fits none of them, or has too few points, has no shape. */
static void test_none(void **state)
{
	(void)state;
	assert_int_equal(shape(doubling, N), GROWTH_UNKNOWN);
	assert_int_equal(shape(late_step, N), GROWTH_UNKNOWN);
	assert_int_equal(shape(nothing, N), GROWTH_UNKNOWN);
	assert_int_equal(shape(linear, 15), GROWTH_UNKNOWN);
	assert_int_equal(shape(linear, 16), GROWTH_GROWING);
	assert_int_equal(shape(linear, 0), GROWTH_UNKNOWN);
}

/* The levels are those at the end of equal parts of the time, also when the parts become longer. */
static void test_levels(void **state)
{
	struct group g[2] = {0};
	struct shapes s;
	const struct shape_curve *c;

	(void)state;
	shapes_init(&s);
	for (uint64_t ms = 0; ms < 1000; ms++) {
		assert_int_equal(shapes_time(&s, ms * 1000000, g, 2), 0);
		if (ms % 10)
			continue;
		assert_int_equal(shapes_note(&s, 1, g[1].live_bytes), 0);
		g[1].live_bytes += 10;
	}
	assert_int_equal(shapes_time(&s, 1000 * 1000000ull, g, 2), 0);
	assert_int_equal(shapes_close(&s, g, 2), 0);
	assert_int_equal(s.point_ns, 16000000);
	c = &s.at.at[1];
	assert_int_equal(c->known, 1000 / 16 + 1);
	for (uint32_t i = 0; i + 1 < c->known; i++)
		assert_in_range(c->level[i], (i + 1) * 16 - 10, (i + 1) * 16 + 10);
	assert_int_equal(c->level[c->known - 1], g[1].live_bytes);
	assert_null(s.at.at[0].level);
	shapes_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
					   cmocka_unit_test(test_none),
					   cmocka_unit_test(test_levels)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
