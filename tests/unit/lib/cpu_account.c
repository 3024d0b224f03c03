/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The CPU time of a piece of work has that of all its threads, and of no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include "lib/cpu_account.h"
#include "lib/deadline.h"
#include "lib/thread.h"

#define WORK_NS 50000000u

static void work(void)
{
	const uint64_t end = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		continue;
}

static void *worker(void *arg)
{
	(void)arg;
	work();
	return NULL;
}

/* Starts one like itself. */
static void *starter(void *arg)
{
	pthread_t t;

	assert_int_equal(thread_start(&t, worker, arg), 0);
	work();
	pthread_join(t, NULL);
	return NULL;
}

/* Works until it is told to end. */
static void *outsider(void *arg)
{
	const bool *end = arg;

	while (!__atomic_load_n(end, __ATOMIC_RELAXED))
		continue;
	return NULL;
}

static void of_all_its_threads(void **state)
{
	struct cpu_account a;
	pthread_t t;
	uint64_t before, ns;

	(void)state;
	cpu_account_begin(&a);
	before = cpu_account_read();
	assert_int_equal(thread_start(&t, starter, NULL), 0);
	pthread_join(t, NULL);
	ns = cpu_account_read() - before;
	cpu_account_end(&a);
	assert_true(ns >= 2 * WORK_NS);
}

static void of_no_others(void **state)
{
	const uint64_t process = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t before, ns, other, all;
	struct cpu_account a;
	bool end = false;
	clockid_t clock;
	pthread_t t;

	(void)state;
	assert_int_equal(thread_start(&t, outsider, &end), 0);
	assert_int_equal(pthread_getcpuclockid(t, &clock), 0);
	cpu_account_begin(&a);
	before = cpu_account_read();
	work();
	while (clock_read_ns(clock) < WORK_NS)
		sched_yield();
	other = clock_read_ns(clock);
	ns = cpu_account_read() - before;
	all = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
	cpu_account_end(&a);
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	assert_true(ns >= WORK_NS);
	assert_true(ns + other <= all);
}

/* Without an account, the time is that of the process. */
static void of_the_process(void **state)
{
	pthread_t t;
	uint64_t before = cpu_account_read();

	(void)state;
	assert_int_equal(thread_start(&t, worker, NULL), 0);
	pthread_join(t, NULL);
	assert_true(cpu_account_read() - before >= WORK_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(of_all_its_threads),
					   cmocka_unit_test(of_no_others),
					   cmocka_unit_test(of_the_process)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
