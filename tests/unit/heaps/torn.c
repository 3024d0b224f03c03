/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A copy that is not of one moment (leaks --gentle) can have chunk headers of one moment and counters of
 * another.  The census must call such a heap approximate because of that, and never damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"
#include "heaps/census.h"
#include "../damaged.h"

enum { BLOCKS = 20000, SEEDS = 20 };

static void *volatile block[BLOCKS];

/* Return: a child with BLOCKS blocks. */
static pid_t start(void)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < BLOCKS; i++)
			block[i] = malloc(1 + i % 500);
		(void)!write(ready[1], &c, 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_no_damage(void **state)
{
	struct deadline patience = deadline_in_ms(20000);
	struct mp_err err = {0};
	pid_t pid = start();
	size_t damaged = 0;
	struct target t;
	struct image img;

	(void)state;
	assert_int_equal(target_look(&t, pid, &err), 0);
	assert_int_equal(target_seize(&t, &patience, &err), 0);
	assert_int_equal(target_stop(&t, &patience, &err), 0);
	image_init(&img, t.arch, pid);
	assert_int_equal(image_take_threads(&img, &t), 0);
	assert_int_equal(image_open_process(&img, pid, &err), 0);
	for (uint64_t i = 0; i < 2ul * SEEDS; i++) {
		struct census c;
		int ret;

		img.torn = i % 2;
		damage_begin(&img, 1 + i / 2, 4096, 65536);
		ret = census_take(&c, &img, &err);
		damage_end(&img);
		vec_for_each (&c.heaps, h) {
			if (!img.torn) {
				damaged += h->damaged.n;
				continue;
			}
			assert_int_equal(h->damaged.n, 0);
			assert_false(h->exact);
			assert_non_null(strstr(h->doubt, "threads ran while it was copied"));
		}
		assert_true(!ret || ret == -ENOENT);
		census_free(&c);
	}
	assert_true(damaged > 0); /* else nothing was tested */
	image_close(&img);
	target_close(&t);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_damage)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
