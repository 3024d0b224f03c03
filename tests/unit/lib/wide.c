/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/wide.h"

static uint64_t random64(void)
{
	uint64_t n = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();

	return n >> rand() % 64;
}

/* Computes the product of @a and @b by long multiplication with 16-bit digits. */
static void on_paper(uint64_t a, uint64_t b, uint16_t digit[8])
{
	for (int i = 0; i < 8; i++)
		digit[i] = 0;
	for (int i = 0; i < 4; i++) {
		uint64_t carry = 0;

		for (int k = 0; k < 4; k++) {
			carry += (a >> 16 * i & 0xffff) * (b >> 16 * k & 0xffff) + digit[i + k];
			digit[i + k] = (uint16_t)carry;
			carry >>= 16;
		}
		digit[i + 4] = (uint16_t)carry;
	}
}

static void test_high(void **state)
{
	uint16_t d[8];

	(void)state;
	assert_true(wide_high(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t a = random64(), b = random64();

		on_paper(a, b, d);
		assert_true(wide_high(a, b) == ((uint64_t)d[7] << 48 | (uint64_t)d[6] << 32 |
						(uint64_t)d[5] << 16 | d[4]));
	}
}

static void test_mul_div(void **state)
{
	(void)state;
	assert_true(wide_mul_div(UINT64_MAX, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
	assert_true(wide_mul_div(UINT64_MAX, 2, 1) == UINT64_MAX);
	assert_true(wide_mul_div(7, 3, 0) == UINT64_MAX);
	assert_true(wide_mul_div(7, 3, 2) == 10);
	for (int i = 0; i < 100000; i++) {
		uint64_t a = random64(), c = random64() | 1, q = random64();
		uint64_t b = wide_mul_div(a, q, c);
		uint64_t high = wide_high(b, c), low = b * c;

		/* b * c <= a * q < (b + 1) * c, unless it does not fit */
		if (b == UINT64_MAX)
			continue;
		assert_true(high < wide_high(a, q) || (high == wide_high(a, q) && low <= a * q));
		high += low + c < low;
		low += c;
		assert_true(high > wide_high(a, q) || (high == wide_high(a, q) && low > a * q));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_high),
	    cmocka_unit_test(test_mul_div),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
