/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A list of allocations that is collected part by part is the list that is collected at once. */
#include "export/lists/collect.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/lists/allocation_seek.h"
#include "formats/file.h"
#include "model/model.h"

/* More than the entries beyond the wanted ones that are kept for a while. */
#define EVENTS 30000
#define ADDRS  200u

static char path[] = "/tmp/memprof-unit-XXXXXX";
static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static void put(struct mpf_writer *w, uint8_t kind, uint64_t now, uint64_t at, uint64_t old)
{
	struct mp_event ev = {
	    .kind = kind, .time_ns = now, .addr = at, .old_addr = old, .tid = 1, .fd = -1};

	if (kind == EV_ALLOC || kind == EV_REALLOC_END)
		ev.size = ev.usable = 1 + rnd(20);
	assert_int_equal(mpf_put_event(w, &ev), 0);
}

/* Allocates, frees and resizes at random; sizes and times are often equal. */
static int setup(void **state)
{
	static const struct mp_hook_info hook = {"malloc", "libc.so.6", 1};
	struct mp_info info = {.pid = 7};
	bool live[ADDRS] = {false};
	struct mpf_writer *w;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	mpf_put_hook(w, &hook);
	for (uint64_t n = 0; n < EVENTS; n++) {
		uint64_t i = rnd(ADDRS), at = 0x1000 + i * 32, now = n / 3 * 1000;

		if (!live[i]) {
			put(w, EV_ALLOC, now, at, 0);
		} else if (rnd(4)) {
			put(w, EV_REALLOC_BEGIN, now, at, 0);
			put(w, EV_REALLOC_END, now, at, at);
		} else {
			put(w, EV_FREE, now, at, 0);
			live[i] = false;
			continue;
		}
		live[i] = true;
	}
	assert_int_equal(mpf_close(w), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void same_entry(const struct allocations *a, const struct allocation *x,
		       const struct allocations *b, const struct allocation *y)
{
	const struct chain_end *p = allocations_chain(a, x), *q = allocations_chain(b, y);

	assert_int_equal(x->block.ordinal, y->block.ordinal);
	assert_int_equal(x->key, y->key);
	assert_int_equal(x->end_ns, y->end_ns);
	assert_int_equal(x->position, y->position);
	assert_int_equal(p != NULL, q != NULL);
	if (!p)
		return;
	assert_int_equal(p->length, q->length);
	assert_int_equal(p->first_ns, q->first_ns);
	assert_int_equal(p->end_ns, q->end_ns);
	assert_int_equal(p->ended, q->ended);
}

static void in_parts(const struct model *m, const struct view *order, uint64_t count,
		     const struct allocations *all)
{
	struct view part = *order;
	struct allocation last;
	size_t done = 0;

	part.count = count;
	for (;;) {
		struct allocations a;

		assert_int_equal(allocations_collect(m, &part, done ? &last : NULL, &a, NULL), 0);
		assert_int_equal(a.total, all->total);
		for (size_t i = 0; i < a.at.n; i++)
			same_entry(&a, &a.at.at[i], all, &all->at.at[done + i]);
		done += a.at.n;
		/* Otherwise memory would not be that of the part. */
		assert_true(a.chains.n <= 4 * count + 8192);
		if (a.at.n < count) {
			allocations_free(&a);
			break;
		}
		last = a.at.at[a.at.n - 1];
		allocations_free(&a);
	}
	assert_int_equal(done, all->at.n);
}

/* Finds the entry number @skip, and compares what follows it. */
static void at_place(const struct model *m, const struct view *order, uint64_t skip,
		     uint64_t within, const struct allocations *all)
{
	struct view part = *order;
	struct allocation_place place;
	struct allocations a;

	part.skip = skip;
	assert_int_equal(allocations_seek(m, &part, within, &place, NULL), 0);
	assert_true(place.before <= skip);
	assert_true(!place.at_start || !place.before);
	assert_true(skip - place.before <= within || place.before == all->total);
	part.skip = 0;
	part.count = 50;
	assert_int_equal(
	    allocations_collect(m, &part, place.at_start ? NULL : &place.after, &a, NULL), 0);
	assert_int_equal(a.total, all->total);
	assert_int_equal(a.at.n, all->total - place.before < 50 ? all->total - place.before : 50);
	for (size_t i = 0; i < a.at.n; i++)
		same_entry(&a, &a.at.at[i], all, &all->at.at[place.before + i]);
	allocations_free(&a);
}

static void test_places(void **state)
{
	struct model m;

	(void)state;
	assert_int_equal(model_load(path, NULL, &m, NULL), 0);
	for (uint32_t i = 0; i < 2 * ALLOCATION_KEYS; i++) {
		struct view order = {.sort = i / 2, .descending = i % 2, .count = VIEW_ALL};
		struct allocations all;

		assert_int_equal(allocations_collect(&m, &order, NULL, &all, NULL), 0);
		at_place(&m, &order, rnd(all.total), 0, &all);
		at_place(&m, &order, rnd(all.total), 60, &all);
		at_place(&m, &order, 0, 10, &all);
		at_place(&m, &order, all.total - 1, 0, &all);
		at_place(&m, &order, all.total, 10, &all);
		at_place(&m, &order, all.total * 3, 10, &all);
		allocations_free(&all);
	}
	model_free(&m);
}

static void test_parts(void **state)
{
	struct model m;

	(void)state;
	assert_int_equal(model_load(path, NULL, &m, NULL), 0);
	for (uint32_t i = 0; i < 2 * ALLOCATION_KEYS; i++) {
		struct view order = {.sort = i / 2, .descending = i % 2, .count = VIEW_ALL};
		struct allocations all;

		assert_int_equal(allocations_collect(&m, &order, NULL, &all, NULL), 0);
		assert_int_equal(all.total, all.at.n);
		assert_true(all.total > EVENTS / 2);
		in_parts(&m, &order, 777, &all);
		in_parts(&m, &order, 5000, &all);
		in_parts(&m, &order, all.total, &all);
		allocations_free(&all);
	}
	model_free(&m);
}

/* Nothing is wanted but the number of entries. */
static void test_none(void **state)
{
	struct view none = {.count = 0};
	struct allocations a;
	struct model m;

	(void)state;
	assert_int_equal(model_load(path, NULL, &m, NULL), 0);
	assert_int_equal(allocations_collect(&m, &none, NULL, &a, NULL), 0);
	assert_int_equal(a.at.n, 0);
	assert_true(a.total > EVENTS / 2);
	assert_true(a.chains.n <= 8192);
	allocations_free(&a);
	model_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
