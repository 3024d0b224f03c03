/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The standard errors of groups whose recorded allocations all count once, in a thinned recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/record.h"
#include "formats/session.h"
#include "model/model.h"

#define MS     1000000u
#define STACKS 4u

static char path[] = "/tmp/memprof-unit-XXXXXX";

struct block {
	uint64_t time_ns, size;
	uint32_t stack;
	uint8_t weight, flags;
};

/* Writes a recording of @n blocks that stay live, and loads it. */
static void load(const struct block *b, size_t n, uint64_t thinned, struct model *m)
{
	static const struct mp_hook_info hook = {"malloc", "libc.so.6", 1};
	struct mp_finish finish = {.reason = 1, .end_ns = 1000 * MS};
	struct mp_losses losses = {.thinned = thinned};
	struct model_options options = {0};
	struct mp_info info = {.pid = 7};
	struct mp_err err = {0};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	mpf_put_hook(w, &hook);
	for (uint32_t id = 1; id <= STACKS; id++) {
		uint64_t pc = (0x400000 + id) | SS_PC_EXACT;

		mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1);
	}
	for (size_t i = 0; i < n; i++) {
		struct mp_event ev = {.kind = EV_ALLOC,
				      .time_ns = b[i].time_ns,
				      .addr = 0x100000 * (i + 1),
				      .size = b[i].size,
				      .usable = b[i].size,
				      .stack = b[i].stack,
				      .weight = b[i].weight,
				      .flags = b[i].flags,
				      .tid = 5,
				      .fd = -1};

		assert_int_equal(mpf_put_event(w, &ev), 0);
	}
	mpf_put_losses(w, &losses);
	mpf_put_finish(w, &finish);
	assert_int_equal(mpf_close(w), 0);
	if (model_load(path, &options, m, &err))
		fail_msg("%s", err.what);
}

/* Checks the variances of live blocks, of their bytes, and of the number of allocations. */
static void expect(const struct model *m, uint32_t stack, double blocks, double bytes,
		   double allocations)
{
	const struct group *g = &m->sums.group[stack];

	assert_float_equal(g->variance_blocks, blocks, 1e-6);
	assert_float_equal(g->variance_live, bytes, 1e-6);
	assert_float_equal(g->variance_allocations, allocations, 1e-6);
}

static void during_a_period(void **state)
{
	static const struct block b[] = {
	    {10 * MS, 100, 1, 3, 0},
	    {11 * MS, 50, 2, 0, 0},
	    {11 * MS, MPR_WEIGHT_MAX_SIZE, 3, 0, 0},
	    {12 * MS, 100, 1, 3, 0},
	    {500 * MS, 60, 4, 0, 0},
	};
	struct model m;

	(void)state;
	load(b, 5, 14, &m);
	expect(&m, 1, 2 * 56 + 56, (2 * 56 + 56) * 1e4, 2 * 56);
	/* One of it may have been left out. */
	expect(&m, 2, 2, 2 * 2500, 2);
	/* So large blocks are never left out, and after the period none are. */
	expect(&m, 3, 0, 0, 0);
	expect(&m, 4, 0, 0, 0);
	model_free(&m);
}

/* None that represents others was recorded. */
static void without_a_period(void **state)
{
	static const struct block b[] = {{11 * MS, 50, 2, 0, 0}};
	struct model m;

	(void)state;
	load(b, 1, 1, &m);
	expect(&m, 2, 2, 2 * 2500, 2);
	model_free(&m);
	load(b, 1, 0, &m);
	expect(&m, 2, 0, 0, 0);
	model_free(&m);
}

/* The period was in the recording before. */
static void carried_over(void **state)
{
	static const struct block b[] = {
	    {0, 100, 1, 1, EV_F_CARRIED},
	    {0, 50, 2, 0, EV_F_CARRIED},
	    {0, MPR_WEIGHT_MAX_SIZE, 3, 0, EV_F_CARRIED},
	    {11 * MS, 60, 4, 0, 0},
	};
	struct model m;

	(void)state;
	load(b, 4, 3, &m);
	expect(&m, 1, 2 + 2, 4e4, 0);
	expect(&m, 2, 2, 2 * 2500, 0);
	expect(&m, 3, 0, 0, 0);
	expect(&m, 4, 2, 2 * 3600, 2);
	model_free(&m);
	load(b + 1, 3, 0, &m);
	expect(&m, 2, 0, 0, 0);
	model_free(&m);
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(during_a_period),
	    cmocka_unit_test(without_a_period),
	    cmocka_unit_test(carried_over),
	};

	return cmocka_run_group_tests_name("errors of thinned groups", tests, setup, teardown);
}
