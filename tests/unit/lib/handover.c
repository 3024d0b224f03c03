/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The thread works on all given slots in order, also on those given just before the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include "lib/handover.h"

#define SLOTS 3u

struct work {
	unsigned int value[SLOTS], done;
	bool right;
	sem_t may; /* work on the next slot, if @holds */
	bool holds;
	atomic_uint begun;
};

static void work(void *arg, unsigned int slot)
{
	struct work *w = arg;
	sigset_t blocked;

	atomic_fetch_add(&w->begun, 1);
	if (w->holds)
		sem_wait(&w->may);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (slot != w->done % SLOTS || w->value[slot] != w->done || !sigismember(&blocked, SIGINT))
		w->right = false;
	w->done++;
}

static void begin(struct handover *h, struct work *w, bool holds)
{
	*w = (struct work){.right = true, .holds = holds};
	sem_init(&w->may, 0, 0);
	assert_int_equal(handover_start(h, SLOTS, work, w), 0);
}

static void give(struct handover *h, struct work *w, unsigned int value)
{
	unsigned int slot = handover_slot(h);

	assert_int_equal(slot, value % SLOTS);
	w->value[slot] = value;
	handover_give(h);
}

static void end(struct handover *h, struct work *w, unsigned int given)
{
	handover_stop(h);
	assert_int_equal(w->done, given);
	assert_true(w->right);
	sem_destroy(&w->may);
}

/* A slot comes again only after its work: its value would be overwritten. */
static void test_order(void **state)
{
	struct handover h;
	struct work w;

	(void)state;
	begin(&h, &w, false);
	for (unsigned int i = 0; i < 1000; i++) {
		give(&h, &w, i);
		if (i % 100 == 99) {
			handover_wait(&h);
			assert_int_equal(w.done, i + 1);
		}
	}
	end(&h, &w, 1000);
}

static void test_waits_for_all_but_the_last(void **state)
{
	struct handover h;
	struct work w;

	(void)state;
	begin(&h, &w, true);
	handover_wait_but(&h, 1);
	give(&h, &w, 0);
	handover_wait_but(&h, 1);
	give(&h, &w, 1);
	sem_post(&w.may);
	handover_wait_but(&h, 1);
	while (atomic_load(&w.begun) < 2)
		;
	assert_int_equal(w.done, 1);
	sem_post(&w.may);
	end(&h, &w, 2);
}

static void test_stop_with_work_left(void **state)
{
	(void)state;
	for (unsigned int n = 0; n <= SLOTS; n++) {
		struct handover h;
		struct work w;

		begin(&h, &w, true);
		for (unsigned int i = 0; i < n; i++)
			give(&h, &w, i);
		for (unsigned int i = 0; i < n; i++)
			sem_post(&w.may);
		end(&h, &w, n);
	}
}

static void test_start_again(void **state)
{
	struct handover h = {0};
	struct work w;

	(void)state;
	handover_stop(&h);
	for (unsigned int n = 0; n < 50; n++) {
		begin(&h, &w, false);
		for (unsigned int i = 0; i < n; i++)
			give(&h, &w, i);
		end(&h, &w, n);
		handover_stop(&h);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order), cmocka_unit_test(test_waits_for_all_but_the_last),
	    cmocka_unit_test(test_stop_with_work_left), cmocka_unit_test(test_start_again)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
