/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Slots pass through all stages in order, with one processor and with several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "lib/stages.h"

#define SLOTS 3u

struct work {
	unsigned int value[SLOTS], done[MAX_STAGES];
	unsigned int last_of[MAX_STAGES]; /* number of slots after which the stage ends */
	pthread_t caller;
	bool right;
};

static bool work(void *arg, unsigned int stage, unsigned int slot)
{
	struct work *w = arg;
	unsigned int n = w->done[stage]++;

	if (slot != n % SLOTS || (stage == 2 && !pthread_equal(pthread_self(), w->caller)))
		w->right = false;
	if (!stage)
		w->value[slot] = n * 10;
	else if (w->value[slot] != n * 10 + stage - 1)
		w->right = false;
	w->value[slot] = n * 10 + stage;
	return n + 1 < w->last_of[stage];
}

static struct work run(unsigned int first, unsigned int second, unsigned int third)
{
	struct work w = {
	    .last_of = {first, second, third}, .right = true, .caller = pthread_self()};
	struct stages s = {.n = 3, .slots = SLOTS, .work = work, .arg = &w};

	stages_run(&s);
	assert_true(w.right);
	return w;
}

static void all_ends(void)
{
	for (unsigned int n = 1; n < 300; n = n * 2 + 1) {
		struct work w = run(n, n, n);

		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(w.done[i], n);
		w = run(1000, n, n); /* a later stage ends first */
		assert_int_equal(w.done[2], n);
		assert_in_range(w.done[0], n, n + SLOTS);
		w = run(1000, 1000, n);
		assert_int_equal(w.done[2], n);
		assert_in_range(w.done[1], n, n + SLOTS);
	}
}

static void test_here(void **state)
{
	(void)state;
	all_ends();
}

static void test_one_processor(void **state)
{
	cpu_set_t before, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	all_ends();
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_here),
						  cmocka_unit_test(test_one_processor)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
