/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sorted runs of any number, length and times are merged in order, equal times in the order of the runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "record/order/order.h"
#include "record/order/sort.h"

#define EVENTS 20000u
#define RUNS   300u

static struct pending *events, *scratch;

static int begin(void **state)
{
	(void)state;
	events = calloc(EVENTS, sizeof(*events));
	scratch = calloc(EVENTS, sizeof(*scratch));
	return events && scratch ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(events);
	free(scratch);
	return 0;
}

/* Makes @runs runs with times from 0 to @most, numbers them, and merges them.  Of each 1000 events one has
 * a time that is @outlier times as late. */
static void merge(size_t runs, uint64_t most, uint64_t outlier)
{
	size_t ends[RUNS], n = 0;

	for (size_t i = 0; i < runs; i++) {
		size_t first = n;

		ends[i] = i + 1 == runs ? EVENTS : (i + 1) * EVENTS / runs - (size_t)(rand() % 10);
		for (; n < ends[i]; n++)
			events[n].time = (uint64_t)rand() % (most + 1) * (n % 1000 ? 1 : outlier);
		sort_events(events + first, n - first, scratch);
		for (size_t k = first; k < n; k++)
			events[k].slot = (uint32_t)k;
	}
	sort_merge_runs(&events, &scratch, ends, runs);
	for (size_t i = 1; i < EVENTS; i++) {
		assert_true(events[i - 1].time <= events[i].time);
		if (events[i - 1].time == events[i].time)
			assert_true(events[i - 1].slot < events[i].slot);
	}
}

static void few_runs(void **state)
{
	(void)state;
	for (size_t runs = 1; runs < 10; runs++)
		merge(runs, 1000000, 1);
}

static void many_runs(void **state)
{
	(void)state;
	merge(RUNS, 1000000, 1);
	merge(RUNS, UINT32_MAX, 1);
}

/* Also what a malicious target writes */
static void most_times_are_close(void **state)
{
	(void)state;
	merge(RUNS, 0, 1);
	merge(RUNS, 3, 1);
	merge(RUNS, 1000, 1u << 31);
	merge(RUNS, 1000, 1ull << 54);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(few_runs),
	    cmocka_unit_test(many_runs),
	    cmocka_unit_test(most_times_are_close),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
