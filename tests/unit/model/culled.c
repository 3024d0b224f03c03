/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Filters applied to culled blocks, of which the recording has only sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/filter.h"
#include "model/history.h"
#include "model/model.h"

static char path[] = "/tmp/memprof-unit-XXXXXX";

/* Stack 1: a live block of 100 bytes by thread 5, and 10 culled blocks of 1000 bytes in all by
 * thread 6, of which 4 were temporary; stack 2: 3 culled blocks by thread 5, all temporary. */
static int setup(void **state)
{
	static const struct mp_hook_info hook = {"malloc", "libc.so.6", 1};
	struct mp_info info = {.pid = 7};
	struct mp_event ev = {.kind = EV_ALLOC,
			      .time_ns = 1000,
			      .addr = 0x1000,
			      .size = 100,
			      .usable = 104,
			      .stack = 1,
			      .tid = 5,
			      .fd = -1};
	struct mp_culled c = {.time_ns = 2000,
			      .stack = 1,
			      .tid = 6,
			      .free_tid = 6,
			      .blocks = 10,
			      .bytes = 1000,
			      .usable = 1040,
			      .temporary = 4,
			      .temporary_bytes = 400};
	struct mpf_writer *w;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	mpf_put_hook(w, &hook);
	for (uint32_t id = 1; id <= 2; id++) {
		uint64_t pc = (0x400000 + id) | SS_PC_EXACT;

		mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1);
	}
	mpf_put_event(w, &ev);
	mpf_put_culled(w, &c);
	c = (struct mp_culled){.time_ns = 3000,
			       .stack = 2,
			       .tid = 5,
			       .free_tid = 5,
			       .blocks = 3,
			       .bytes = 30,
			       .usable = 72,
			       .temporary = 3,
			       .temporary_bytes = 30};
	mpf_put_culled(w, &c);
	return mpf_close(w);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void expect(const char *name, const char *value, uint64_t let_through, uint64_t not_judged)
{
	struct filter f;
	struct model_options o = {.filter = &f};
	struct mp_err err = {0};
	struct model m;

	filter_init(&f);
	if (filter_set(&f, name, value, &err) || model_load(path, &o, &m, &err))
		fail_msg("%s", err.what);
	if (m.sums.total.allocations != let_through || m.doubts.unjudged_blocks != not_judged)
		fail_msg("%s=%s: %llu let through, %llu not judged", name, value,
			 (unsigned long long)m.sums.total.allocations,
			 (unsigned long long)m.doubts.unjudged_blocks);
	assert_int_equal(m.unfiltered.total.allocations, 14);
	assert_int_equal(m.sums.size_class[SIZE_CLASS_CULLED].allocations, m.sums.culled_blocks);
	model_free(&m);
	filter_free(&f);
}

static void test_known(void **state)
{
	(void)state;
	expect("backtraces", "1", 11, 0);
	expect("backtrace_depth_min", "1", 14, 0);
	expect("thread", "6", 10, 0);
	expect("thread", "5", 4, 0);
	expect("group_allocations_min", "4", 11, 0);
	expect("lifetime", "only_leaked", 1, 0);
	expect("lifetime", "bytehound_only_temporary", 13, 0);
	expect("allocator", "jemalloc", 0, 0);
}

static void test_unknown(void **state)
{
	(void)state;
	expect("size_min", "100", 1, 13);
	expect("from", "0", 1 + 13, 0);
	expect("to", "1s", 1, 13);
	expect("position_in_chain_min", "0", 1 + 13, 0);
	expect("chain_length_max", "1", 1, 13);
	expect("lifetime", "only_chain_leaked", 1, 13);
	expect("lifetime", "only_temporary", 3, 10);
	expect("allocator", "main_arena", 1, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known),
					   cmocka_unit_test(test_unknown)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
