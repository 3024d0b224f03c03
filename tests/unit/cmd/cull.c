/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Of the same random events, a culled recording and a complete one must have the same sums. */
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
#include "record/cull.h"
#include "model/model.h"

#define ADDRS	200
#define STACKS	5
#define THREADS 4
#define EVENTS	20000
#define AGE_NS	1000000u
#define STEP_NS 5000u
#define LOST_NS 20000u /* a free that is missing for so long was lost, not overtaken */

static char whole_path[] = "/tmp/memprof-unit-XXXXXX", culled_path[] = "/tmp/memprof-unit-XXXXXX";
static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static struct mpf_writer *create(const char *path)
{
	static const struct mp_hook_info hook[] = {
	    {"malloc", "libc.so.6", 1}, {"free", "libc.so.6", 2}, {"realloc", "libc.so.6", 3}};
	struct mp_info info = {.pid = 7, .machine = 62, .executable = "/bin/x", .cmdline = "x"};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mpf_put_hook(w, &hook[i]), 0);
	for (uint32_t id = 1; id <= STACKS; id++) {
		uint64_t pc = 0x400000 + id;

		assert_int_equal(mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1), 0);
	}
	return w;
}

struct twin {
	struct mpf_writer *whole, *culled;
	struct cull *cull;
	uint64_t now, put;
	bool live[ADDRS];
};

static void put(struct twin *t, const struct mp_event *ev)
{
	uint32_t i = (uint32_t)(ev->addr - 0x10000) / 64;

	assert_int_equal(mpf_put_event(t->whole, ev), 0);
	assert_int_equal(cull_put(t->cull, ev, ev->kind == EV_ALLOC && t->live[i]), 0);
	if (ev->kind == EV_ALLOC && t->live[i])
		t->now += LOST_NS;
	if (ev->kind == EV_ALLOC || ev->kind == EV_FREE)
		t->live[i] = ev->kind == EV_ALLOC;
}

static void put_realloc(struct twin *t, struct mp_event ev, uint32_t from)
{
	uint32_t to = (uint32_t)rnd(ADDRS);
	bool fails = t->live[to] && to != from;

	ev.kind = EV_REALLOC_BEGIN;
	ev.hook = 2;
	put(t, &ev);
	ev.kind = EV_REALLOC_END;
	ev.old_addr = ev.addr;
	ev.addr = fails ? 0 : 0x10000 + to * 64;
	ev.size = ev.usable = fails ? 0 : rnd(500);
	put(t, &ev);
	if (!fails) {
		t->live[from] = false;
		t->live[to] = true;
	}
}

static void put_random(struct twin *t)
{
	/* Some addresses have long-lived blocks, most do not.  Some frees are lost. */
	uint32_t i = (uint32_t)(rnd(20) ? rnd(20) : rnd(ADDRS));
	struct mp_event ev = {.time_ns = t->now += rnd(STEP_NS),
			      .addr = 0x10000 + i * 64,
			      .tid = 1 + (uint32_t)rnd(THREADS),
			      .fd = -1};

	if (t->live[i] && rnd(200)) {
		if (!rnd(10)) {
			ev.stack = 1 + (uint32_t)rnd(STACKS);
			put_realloc(t, ev, i);
			return;
		}
		ev.kind = EV_FREE;
		ev.hook = 1;
	} else {
		ev.kind = EV_ALLOC;
		ev.size = rnd(1000);
		ev.usable = ev.size + rnd(16);
		ev.stack = 1 + (uint32_t)rnd(STACKS);
	}
	put(t, &ev);
}

static void assert_same_group(const struct group *a, const struct group *b)
{
	assert_int_equal(a->allocations, b->allocations);
	assert_int_equal(a->allocated_bytes, b->allocated_bytes);
	assert_int_equal(a->usable_bytes, b->usable_bytes);
	assert_int_equal(a->frees, b->frees);
	assert_int_equal(a->temporary, b->temporary);
	assert_int_equal(a->temporary_bytes, b->temporary_bytes);
	assert_int_equal(a->live_blocks, b->live_blocks);
	assert_int_equal(a->live_bytes, b->live_bytes);
}

static void assert_same_threads(const struct model *a, const struct model *b)
{
	assert_int_equal(a->tasks.threads.n, b->tasks.threads.n);
	for (size_t i = 0; i < a->tasks.threads.n; i++) {
		for (size_t k = 0; k < b->tasks.threads.n; k++) {
			if (a->tasks.threads.at[i].tid != b->tasks.threads.at[k].tid)
				continue;
			assert_int_equal(a->tasks.threads.at[i].allocations,
					 b->tasks.threads.at[k].allocations);
			assert_int_equal(a->tasks.threads.at[i].frees,
					 b->tasks.threads.at[k].frees);
		}
	}
}

static void compare(void)
{
	struct model whole, culled;
	struct mp_err err;

	assert_int_equal(model_load(whole_path, NULL, &whole, &err), 0);
	assert_int_equal(model_load(culled_path, NULL, &culled, &err), 0);
	assert_true(culled.sums.culled_blocks > EVENTS / 5);
	assert_true(culled.counts.events < whole.counts.events * 2 / 3);
	for (uint32_t id = 1; id <= STACKS; id++)
		assert_same_group(&whole.sums.group[id], &culled.sums.group[id]);
	assert_same_group(&whole.sums.total, &culled.sums.total);
	assert_same_threads(&whole, &culled);
	for (size_t i = 0; i < whole.facts.hooks.n; i++)
		assert_int_equal(whole.facts.hooks.at[i].calls, culled.facts.hooks.at[i].calls);
	assert_int_equal(whole.blocks.n, culled.blocks.n);
	for (size_t i = 0; i < whole.blocks.n; i++)
		assert_memory_equal(&whole.blocks.at[i], &culled.blocks.at[i],
				    sizeof(whole.blocks.at[i]));
	model_free(&whole);
	model_free(&culled);
}

static void test_same_sums(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		struct twin t = {.whole = create(whole_path), .culled = create(culled_path)};

		t.cull = cull_new(AGE_NS, t.culled);
		assert_non_null(t.cull);
		for (int i = 0; i < EVENTS; i++) {
			put_random(&t);
			if (i % 500)
				continue;
			assert_int_equal(cull_advance(t.cull, t.now), 0);
			assert_int_equal(cull_put_sums(t.cull), 0);
		}
		assert_int_equal(cull_advance(t.cull, UINT64_MAX), 0);
		assert_int_equal(cull_put_sums(t.cull), 0);
		cull_free(t.cull);
		assert_int_equal(mpf_close(t.whole), 0);
		assert_int_equal(mpf_close(t.culled), 0);
		compare();
	}
}

static int setup(void **state)
{
	(void)state;
	close(mkstemp(whole_path));
	close(mkstemp(culled_path));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(whole_path);
	unlink(culled_path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_sums)};

	return cmocka_run_group_tests_name("record/cull", tests, setup, teardown);
}
