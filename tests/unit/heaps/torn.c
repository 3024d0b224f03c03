/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A copy that is not of one moment (leaks --gentle) can have chunk headers of one moment and counters of
 * another.  The census must call such a heap approximate because of that, and never damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heaps/census.h"
#include "../damaged.h"
#include "../stopped.h"

enum { BLOCKS = 20000, SEEDS = 20 };

static void *volatile block[BLOCKS];

static void make_blocks(int ready)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = malloc(1 + i % 500);
	(void)!write(ready, "", 1);
	for (;;)
		pause();
}

static void test_no_damage(void **state)
{
	struct stopped at_rest;
	struct image *img = &at_rest.img;
	struct mp_err err = {0};
	pid_t pid = child_start(make_blocks);
	size_t damaged = 0;

	(void)state;
	stopped_open(&at_rest, pid);
	for (uint64_t i = 0; i < 2ul * SEEDS; i++) {
		struct census c;
		int ret;

		img->torn = i % 2;
		damage_begin(img, 1 + i / 2, 4096, 65536);
		ret = census_take(&c, img, &err);
		damage_end(img);
		vec_for_each (&c.heaps, h) {
			if (!img->torn) {
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
	stopped_close(&at_rest);
	child_end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_damage)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
