/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The report's sums when records are missing: each allocated block is freed or live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/model.h"

static char path[32];
static struct mpf_writer *writer;
static uint64_t now;

static int setup(void **state)
{
	static const struct mp_hook_info hook = {"malloc", "libc.so.6", 1};
	struct mp_info info = {.pid = 7, .machine = 62, .executable = "/bin/x", .cmdline = "x"};
	uint64_t pc = 0x400000;
	struct mp_err err;

	(void)state;
	strcpy(path, "/tmp/memprof-unit-XXXXXX");
	close(mkstemp(path));
	assert_int_equal(mpf_create(path, &info, &writer, &err), 0);
	assert_int_equal(mpf_put_hook(writer, &hook), 0);
	assert_int_equal(mpf_put_stack(writer, 1, SS_STACK_COMPLETE, &pc, 1), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put(uint32_t tid, int kind, uint64_t old, uint64_t addr, uint64_t size)
{
	struct mp_event ev = {.kind = (uint8_t)kind,
			      .time_ns = now += 1000,
			      .tid = tid,
			      .old_addr = old,
			      .addr = addr,
			      .size = size,
			      .usable = size,
			      .stack = 1,
			      .fd = -1};

	assert_int_equal(mpf_put_event(writer, &ev), 0);
}

static void assert_sums(uint64_t allocs, uint64_t live, uint64_t live_bytes, uint64_t mismatches)
{
	struct mp_err err;
	struct model m;

	assert_int_equal(mpf_close(writer), 0);
	assert_int_equal(model_load(path, NULL, &m, &err), 0);
	assert_int_equal(m.sums.total.allocations, allocs);
	assert_int_equal(m.sums.total.live_blocks, live);
	assert_int_equal(m.sums.total.frees, allocs - live);
	assert_int_equal(m.sums.total.live_bytes, live_bytes);
	assert_int_equal(m.sums.group[1].frees, allocs - live);
	assert_int_equal(m.counts.mismatches, mismatches);
	assert_int_equal(m.counts.foreign_frees, 0);
	model_free(&m);
}

static void test_lost_free(void **state)
{
	(void)state;
	put(1, EV_ALLOC, 0, 0x1000, 10);
	put(1, EV_ALLOC, 0, 0x1000, 20);
	assert_sums(2, 1, 20, 1);
}

static void test_realloc_without_end(void **state)
{
	(void)state;
	put(1, EV_ALLOC, 0, 0x1000, 10);
	put(1, EV_REALLOC_BEGIN, 0, 0x1000, 0);
	put(1, EV_ALLOC, 0, 0x3000, 5);
	put(1, EV_REALLOC_BEGIN, 0, 0x3000, 0);
	put(1, EV_REALLOC_END, 0x3000, 0x4000, 50);
	assert_sums(3, 1, 50, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_lost_free), TEST(test_realloc_without_end)};

	return cmocka_run_group_tests_name("report/balance", tests, NULL, NULL);
}
