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
#include "model/filter/filter.h"
#include "model/history/history.h"
#include "model/model.h"

static char path[] = "/tmp/memprof-unit-XXXXXX";

/*
 * Stack 1: a live block of 100 bytes by thread 5, and 10 culled blocks of 100 bytes by thread 6, which
 * lived for 1 to 2 us (6) and 5 to 10 us (4), allocated from 2 to 4 us.  Stack 2: 3 culled blocks of
 * 10 bytes by thread 5, all temporary, allocated at 20 us, each after a mark; 2 that realloc() made and
 * 2 that it ended.
 */
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
	struct mp_culled c = {.size = 100,
			      .stack = 1,
			      .tid = 6,
			      .free_tid = 6,
			      .first_ns = 2000,
			      .last_ns = 4000,
			      .blocks = 10,
			      .usable = 1040,
			      .lifetime = {[1] = 6, [3] = 4}};
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
	mpf_put_mark(w, 10000, "loaded");
	c = (struct mp_culled){.size = 10,
			       .stack = 2,
			       .tid = 5,
			       .free_tid = 5,
			       .flags = MP_CULLED_TEMPORARY,
			       .first_ns = 20000,
			       .last_ns = 20000,
			       .blocks = 3,
			       .usable = 72,
			       .lifetime = {[0] = 3}};
	mpf_put_culled(w, &c);
	c.flags = MP_CULLED_RESIZED;
	c.lifetime[0] = 2;
	c.usable = 48;
	mpf_put_culled(w, &c);
	c.flags = MP_CULLED_CONTINUED;
	c.size = 20;
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
	assert_int_equal(m.unfiltered.total.allocations, 18);
	model_free(&m);
	filter_free(&f);
}

static void test_stacks_and_threads(void **state)
{
	(void)state;
	expect("backtraces", "1", 11, 0);
	expect("backtrace_depth_min", "1", 18, 0);
	expect("thread", "6", 10, 0);
	expect("thread", "5", 8, 0);
	expect("group_allocations_min", "8", 11, 0);
	expect("allocator", "jemalloc", 0, 0);
	expect("allocator", "main_arena", 18, 0);
	expect("allocator", "other_arena", 0, 0);
}

static void test_sizes_and_fates(void **state)
{
	(void)state;
	expect("size_min", "100", 11, 0);
	expect("size_max", "99", 7, 0);
	expect("lifetime", "only_leaked", 1, 0);
	expect("lifetime", "only_chain_leaked", 1, 0);
	expect("lifetime", "only_temporary", 3, 0);
	expect("lifetime", "bytehound_only_temporary", 17, 0);
}

/* The limits of classes are known exactly. */
static void test_lifetimes(void **state)
{
	(void)state;
	expect("lifetime_min", "1us", 1 + 10, 0);
	expect("lifetime_max", "1us", 7, 0);
	expect("lifetime_min", "5us", 1 + 4, 0);
	expect("lifetime_max", "5us", 7 + 6, 0);
	expect("lifetime_max", "3us", 7 + 6, 0);
	expect("lifetime_min", "1500ns", 1 + 4, 6);
	expect("lifetime_max", "7us", 7 + 6, 4);
}

static void test_times(void **state)
{
	(void)state;
	expect("from", "2us", 17, 0);
	expect("from", "3us", 7, 10);
	expect("to", "4us", 11, 0);
	expect("to", "3us", 1, 10);
	expect("marker", "loaded", 7, 0);
	expect("alive_at", "1500ns", 1, 0);
	expect("alive_at", "3us", 1, 10);
	expect("alive_at", "15us", 1, 0);
	expect("lifetime", "only_deallocated_in_current_range", 17, 0);
}

static void test_chains(void **state)
{
	(void)state;
	expect("chain_length_max", "1", 14, 0);
	expect("chain_length_min", "2", 4, 0);
	expect("chain_length_min", "3", 0, 4);
	expect("position_in_chain_min", "1", 2, 0);
	expect("first_size_max", "10", 5, 2);
	expect("last_size_max", "10", 3, 4);
}

static void test_unknown(void **state)
{
	(void)state;
	expect("address_min", "0x1000", 1, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_stacks_and_threads),
					   cmocka_unit_test(test_sizes_and_fates),
					   cmocka_unit_test(test_lifetimes),
					   cmocka_unit_test(test_times),
					   cmocka_unit_test(test_chains),
					   cmocka_unit_test(test_unknown)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
