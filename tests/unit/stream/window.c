/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What was put into the window comes out of it, in any steps, until it is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "stream/window.h"

#define SIZE 64u

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 37 >> 3);
}

static void put(struct window *w, size_t most)
{
	size_t n;
	uint8_t *at = window_room(w, &n);

	n = n < most ? n : most;
	for (size_t i = 0; i < n; i++)
		at[i] = byte_at(w->end + i);
	window_add(w, n);
}

static void check(const struct window *w)
{
	for (uint64_t offset = w->begin; offset < w->end;) {
		size_t n;
		const uint8_t *at = window_at(w, offset, &n);

		assert_true(n > 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(at[i], byte_at(offset + i));
		offset += n;
	}
}

static void test_steps(void **state)
{
	struct window w;

	(void)state;
	assert_int_equal(window_init(&w, SIZE), 0);
	srand(1);
	while (w.end < 10000) {
		put(&w, (size_t)rand() % 50);
		assert_true(w.end - w.begin <= SIZE);
		check(&w);
		window_forget(&w, w.begin + (uint64_t)rand() % (w.end - w.begin + 1));
		check(&w);
	}
	window_free(&w);
}

static void test_full(void **state)
{
	struct window w;
	size_t n;

	(void)state;
	assert_int_equal(window_init(&w, SIZE), 0);
	put(&w, 40);
	put(&w, 40);
	window_room(&w, &n);
	assert_int_equal(w.end, SIZE);
	assert_int_equal(n, 0);
	window_forget(&w, 10);
	window_room(&w, &n);
	assert_int_equal(n, 10);
	window_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests_name("stream/window", tests, NULL, NULL);
}
