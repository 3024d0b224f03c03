/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Of the same random events, a culled recording and a complete one must have the same sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "record/culling/cull.h"
#include "record/culling/cull_file.h"
#include "record/levels.h"
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

static struct mpf_writer *create(const char *path, uint64_t cull_ns)
{
	static const struct mp_hook_info hook[] = {
	    {"malloc", "libc.so.6", 1}, {"free", "libc.so.6", 2}, {"realloc", "libc.so.6", 3}};
	struct mp_info info = {
	    .pid = 7, .machine = 62, .executable = "/bin/x", .cmdline = "x", .cull_ns = cull_ns};
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
	struct levels levels;
	uint64_t now, back; /* steps back of the time, at most */
	struct {
		bool live;
		uint64_t size;
		uint32_t stack, number;
	} block[ADDRS];
};

static uint32_t index_of(uint64_t addr)
{
	return (uint32_t)(addr - 0x10000) / 64;
}

static void let_go(void *ctx, const struct mp_event *ev)
{
	((struct twin *)ctx)->block[index_of(ev->addr)].number = CULL_NONE;
}

static void ahead(void *ctx, uint64_t addr)
{
	assert_true(index_of(addr) < ADDRS && ctx);
}

static void change(struct twin *t, uint32_t i, bool ends)
{
	struct level_change c = {t->now, t->block[i].size, 1, t->block[i].stack, ends, false};

	assert_int_equal(levels_change(&t->levels, &c), 0);
}

static void put_whole(struct twin *t, const struct mp_event *ev)
{
	assert_int_equal(mpf_put_event(t->whole, ev), 0);
	assert_int_equal(levels_time(&t->levels, ev->time_ns, t->culled), 0);
}

/* A free of the block was lost. */
static void replace(struct twin *t, uint32_t i)
{
	if (t->block[i].number != CULL_NONE)
		cull_forget(t->cull, t->block[i].number);
	change(t, i, true);
}

static void begin(struct twin *t, const struct mp_event *ev)
{
	uint32_t i = index_of(ev->addr);

	t->block[i].live = true;
	t->block[i].size = ev->size;
	t->block[i].stack = ev->stack;
	change(t, i, false);
}

static void put_alloc(struct twin *t, const struct mp_event *ev)
{
	uint32_t i = index_of(ev->addr);
	bool replaces = t->block[i].live;

	put_whole(t, ev);
	if (replaces) {
		replace(t, i);
		t->block[i].number = CULL_NONE;
		assert_int_equal(cull_put(t->cull, ev), 0);
		t->now += LOST_NS;
	} else {
		assert_int_equal(cull_begin(t->cull, ev, &t->block[i].number), 0);
	}
	begin(t, ev);
}

static void put_free(struct twin *t, const struct mp_event *ev)
{
	uint32_t i = index_of(ev->addr), number = t->block[i].number;

	put_whole(t, ev);
	if (number == CULL_NONE)
		assert_int_equal(cull_put(t->cull, ev), 0);
	else
		assert_int_equal(cull_end(t->cull, number, ev), 0);
	change(t, i, true);
	t->block[i].live = false;
}

/* A block that is freed before anything else happens. */
static void put_pair(struct twin *t, const struct mp_event *ev)
{
	uint32_t i = index_of(ev->addr);
	struct mp_event by = *ev;
	struct level_change c = {t->now, ev->size, 1, ev->stack, false, false};

	if (t->block[i].live)
		return;
	by.kind = EV_FREE;
	by.hook = 1;
	by.time_ns += rnd(3);
	put_whole(t, ev);
	put_whole(t, &by);
	assert_int_equal(cull_pair(t->cull, ev, &by), 0);
	assert_int_equal(levels_pair(&t->levels, &c), 0);
}

static void put_realloc(struct twin *t, struct mp_event ev, uint32_t from)
{
	uint32_t to = (uint32_t)rnd(ADDRS), number = t->block[from].number;
	struct cull_realloc begun = {CULL_NONE, 0};
	bool fails = t->block[to].live && to != from;

	ev.kind = EV_REALLOC_BEGIN;
	ev.hook = 2;
	put_whole(t, &ev);
	if (number == CULL_NONE)
		assert_int_equal(cull_put(t->cull, &ev), 0);
	else
		assert_int_equal(cull_resize(t->cull, number, &ev, &begun), 0);
	/* The end can be in the next call of cull_advance(). */
	if (!rnd(50))
		assert_int_equal(cull_advance(t->cull, UINT64_MAX), 0);
	ev.kind = EV_REALLOC_END;
	ev.old_addr = ev.addr;
	ev.addr = fails ? 0 : 0x10000 + to * 64;
	ev.size = fails ? 0 : rnd(500);
	ev.usable = ev.size + (fails ? 0 : rnd(16));
	put_whole(t, &ev);
	if (fails) {
		assert_int_equal(cull_put(t->cull, &ev), 0);
		t->block[from].number = CULL_NONE;
		return;
	}
	change(t, from, true);
	t->block[from].live = false;
	assert_int_equal(cull_resized(t->cull, &begun, &ev, &t->block[to].number), 0);
	begin(t, &ev);
}

static void put_random(struct twin *t)
{
	/* Some addresses have long-lived blocks, most do not.  Some frees are lost. */
	uint32_t i = (uint32_t)(rnd(20) ? rnd(20) : rnd(ADDRS));
	struct mp_event ev = {.time_ns = t->now += rnd(STEP_NS) - (t->back ? rnd(t->back) : 0),
			      .addr = 0x10000 + i * 64,
			      .tid = 1 + (uint32_t)rnd(THREADS),
			      .fd = -1};

	if (t->block[i].live && rnd(200)) {
		if (!rnd(4)) {
			ev.stack = 1 + (uint32_t)rnd(STACKS);
			put_realloc(t, ev, i);
			return;
		}
		ev.kind = EV_FREE;
		ev.hook = 1;
		put_free(t, &ev);
		return;
	}
	ev.kind = EV_ALLOC;
	ev.size = rnd(1000);
	ev.usable = ev.size + rnd(16);
	ev.stack = 1 + (uint32_t)rnd(STACKS);
	if (rnd(3))
		put_alloc(t, &ev);
	else
		put_pair(t, &ev);
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
	assert_int_equal(a->peak_bytes, b->peak_bytes);
	assert_int_equal(a->peak_blocks, b->peak_blocks);
	assert_int_equal(a->most_bytes, b->most_bytes);
	assert_int_equal(a->most_ns, b->most_ns);
	assert_int_equal(a->first_ns, b->first_ns);
	assert_int_equal(a->last_ns, b->last_ns);
}

static void assert_same_sizes(const struct model *a, const struct model *b)
{
	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		const struct size_class *x = &a->sums.size_class[i], *y = &b->sums.size_class[i];

		assert_memory_equal(x, y, sizeof(*x));
	}
}

/* The culled recording's timeline has other points than that of the whole one, but the same sum, end
 * and maximum. */
static void assert_same_timeline(const struct model *a, const struct model *b)
{
	const struct model *m[] = {a, b};
	uint64_t sum[2][4] = {{0}}, most[2] = {0}, last[2];

	for (int i = 0; i < 2; i++) {
		vec_for_each (&m[i]->sums.timeline, p) {
			sum[i][0] += p->allocations;
			sum[i][1] += p->allocated_bytes;
			sum[i][2] += p->frees;
			sum[i][3] += p->freed_bytes;
			most[i] = p->peak_bytes > most[i] ? p->peak_bytes : most[i];
			last[i] = p->live_bytes;
		}
	}
	assert_memory_equal(sum[0], sum[1], sizeof(sum[0]));
	assert_int_equal(most[0], most[1]);
	assert_int_equal(last[0], last[1]);
	assert_true(b->sums.timeline.n > 10);
	assert_int_equal(a->sums.peak_bytes, b->sums.peak_bytes);
	assert_int_equal(a->sums.peak_blocks, b->sums.peak_blocks);
	assert_int_equal(a->sums.peak_time_ns, b->sums.peak_time_ns);
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
	assert_int_equal(culled.counts.events, whole.counts.events);
	assert_true(culled.sums.culled_blocks > 0);
	for (uint32_t id = 1; id <= STACKS; id++)
		assert_same_group(&whole.sums.group[id], &culled.sums.group[id]);
	assert_same_group(&whole.sums.total, &culled.sums.total);
	assert_same_threads(&whole, &culled);
	assert_same_sizes(&whole, &culled);
	assert_same_timeline(&whole, &culled);
	for (size_t i = 0; i < whole.facts.hooks.n; i++)
		assert_int_equal(whole.facts.hooks.at[i].calls, culled.facts.hooks.at[i].calls);
	assert_int_equal(whole.blocks.n, culled.blocks.n);
	for (size_t i = 0; i < whole.blocks.n; i++)
		assert_memory_equal(&whole.blocks.at[i], &culled.blocks.at[i],
				    sizeof(whole.blocks.at[i]));
	model_free(&whole);
	model_free(&culled);
}

static void finish(struct twin *t)
{
	struct mp_finish f = {.end_ns = t->now,
			      .peak_live_bytes = t->levels.peak.bytes,
			      .peak_live_blocks = t->levels.peak.blocks,
			      .peak_time_ns = t->levels.peak.time_ns};

	assert_int_equal(cull_advance(t->cull, UINT64_MAX), 0);
	assert_int_equal(cull_put_sums(t->cull, t->now), 0);
	assert_int_equal(levels_end(&t->levels, t->now, NULL, t->culled), 0);
	cull_free(t->cull);
	levels_free(&t->levels);
	assert_int_equal(mpf_put_finish(t->whole, &f), 0);
	assert_int_equal(mpf_put_finish(t->culled, &f), 0);
	assert_int_equal(mpf_close(t->whole), 0);
	assert_int_equal(mpf_close(t->culled), 0);
}

/* @most: events that are held back; few: many blocks are written although they are young. */
static void run(uint32_t most, uint64_t back)
{
	struct twin t = {.whole = create(whole_path, 0),
			 .culled = create(culled_path, AGE_NS),
			 .now = 10 * STEP_NS,
			 .back = back};
	struct cull_config config = {AGE_NS, most, let_go, ahead, &t};

	t.cull = cull_new(&config, t.culled);
	assert_non_null(t.cull);
	levels_begin(&t.levels, 0);
	for (int i = 0; i < ADDRS; i++)
		t.block[i].number = CULL_NONE;
	for (int i = 0; i < EVENTS; i++) {
		put_random(&t);
		if (!(i % 50))
			assert_int_equal(cull_advance(t.cull, t.now), 0);
		if (!(i % 500))
			assert_int_equal(cull_put_sums(t.cull, t.now), 0);
	}
	finish(&t);
}

static void test_same_sums(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		run(UINT32_MAX, 0);
		compare();
	}
}

static void test_few_held(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		run(30, 0);
		compare();
	}
}

/* A block that is kept reaches the maximum of its stack a second time, after a culled one.  The maximum is
 * of the time when it was first reached. */
static void test_maximum_again(void **state)
{
	struct twin t = {.whole = create(whole_path, 0), .culled = create(culled_path, AGE_NS)};
	struct cull_config config = {AGE_NS, UINT32_MAX, let_go, ahead, &t};
	struct mp_event ev = {
	    .addr = 0x10000, .size = 100, .usable = 100, .stack = 1, .tid = 1, .fd = -1};
	struct model m[2];
	struct mp_err err;

	(void)state;
	t.cull = cull_new(&config, t.culled);
	assert_non_null(t.cull);
	levels_begin(&t.levels, 0);
	for (int i = 0; i < 3; i++) {
		ev.time_ns = t.now += STEP_NS;
		ev.kind = i == 1 ? EV_FREE : EV_ALLOC;
		ev.hook = i == 1;
		if (i == 1)
			put_free(&t, &ev);
		else
			put_alloc(&t, &ev);
	}
	finish(&t);
	assert_int_equal(model_load(whole_path, NULL, &m[0], &err), 0);
	assert_int_equal(model_load(culled_path, NULL, &m[1], &err), 0);
	assert_int_equal(m[1].sums.culled_blocks, 1);
	assert_int_equal(m[1].sums.group[1].most_ns, STEP_NS);
	assert_same_group(&m[0].sums.group[1], &m[1].sums.group[1]);
	model_free(&m[0]);
	model_free(&m[1]);
}

/* Return: the slice of test_late_events() that @time_ns is in: before 100 ns, before 200 ns, or later. */
static uint64_t slice_at(uint64_t time_ns)
{
	return time_ns < 200 ? time_ns / 100 : 2;
}

/* Every sum of the culled recording must be of one slice, and all have @blocks blocks. */
static void assert_sums_of_one_slice(uint64_t blocks)
{
	struct mpf_reader *r;
	struct mpf_item it;
	struct mp_info info;
	struct mp_err err;

	assert_int_equal(mpf_open(culled_path, &r, &info, &err), 0);
	while (mpf_next(r, &it, &err) > 0) {
		const struct mp_culled *sum = &it.culled;

		if (it.kind != MPF_CULLED)
			continue;
		assert_int_equal(slice_at(sum->first_ns), slice_at(sum->last_ns));
		blocks -= sum->blocks;
	}
	assert_int_equal(blocks, 0);
	mpf_reader_free(r);
}

/* Slices begin before the events of earlier slices arrive, as when the recorder is behind. */
static void test_late_events(void **state)
{
	struct cull_config config = {AGE_NS, UINT32_MAX, let_go, ahead, NULL};
	struct mpf_writer *file = create(culled_path, AGE_NS);
	struct cull *c = cull_new(&config, file);
	struct mp_finish f = {.end_ns = 1000};

	(void)state;
	assert_int_equal(cull_put_sums(c, 100), 0);
	assert_int_equal(cull_put_sums(c, 200), 0);
	assert_int_equal(cull_put_sums(c, 150), 0);	   /* begins no slice: 200 is later */
	for (uint64_t time = 50; time < 300; time += 10) { /* 25 times */
		struct mp_event born = {
		    .kind = EV_ALLOC, .tid = 1, .addr = 4096, .size = 8, .time_ns = time};
		struct mp_event end = {
		    .kind = EV_FREE, .tid = 1, .addr = 4096, .time_ns = time + 1};

		assert_int_equal(cull_pair(c, &born, &end), 0);
	}
	assert_int_equal(cull_put_sums(c, 300), 0);
	cull_free(c);
	assert_int_equal(mpf_put_finish(file, &f), 0);
	assert_int_equal(mpf_close(file), 0);
	assert_sums_of_one_slice(25);
}

/* Stripping the whole recording gives the same as culling while recording; also if times go back, as when
 * a thread is preempted between reading the clock and writing its record. */
static void test_strip(void **state)
{
	struct mp_err err;
	bool truncated;

	(void)state;
	for (int round = 0; round < 4; round++) {
		run(UINT32_MAX, round < 2 ? 0 : STEP_NS / 4);
		assert_int_equal(recording_strip(whole_path, culled_path,
						 round % 2 ? AGE_NS : UINT64_MAX, &truncated, &err),
				 0);
		compare();
	}
}

/* A culled recording that is culled once more, with a greater age. */
static void test_strip_culled(void **state)
{
	char path[] = "/tmp/memprof-unit-XXXXXX";
	struct mp_err err;
	bool truncated;

	(void)state;
	close(mkstemp(path));
	run(UINT32_MAX, 0);
	assert_int_equal(recording_strip(culled_path, path, UINT64_MAX, &truncated, &err), 0);
	assert_int_equal(rename(path, culled_path), 0);
	compare();
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
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same_sums),	  cmocka_unit_test(test_few_held),
	    cmocka_unit_test(test_maximum_again), cmocka_unit_test(test_late_events),
	    cmocka_unit_test(test_strip),	  cmocka_unit_test(test_strip_culled)};

	return cmocka_run_group_tests_name("record/cull", tests, setup, teardown);
}
