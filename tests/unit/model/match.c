/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Joins a process's blocks with random recordings; compares with a simple implementation. */
#include "model/match.h"
#include "fake.h"

#define RECORDINGS 150

static int setup(void **state)
{
	(void)state;
	return close(mkstemp(path));
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* Return: the allocation that is live at @addr at the time @at_ns, or NULL. */
static const struct alloc *live_at(const struct fake *f, uint64_t addr, uint64_t at_ns)
{
	const struct alloc *found = NULL;

	for (int i = 0; i < f->n; i++) {
		const struct alloc *a = &f->a[i];

		if (a->addr == addr && a->t <= at_ns && a->end > at_ns)
			found = a;
	}
	return found;
}

static void check(const struct fake *f, const struct model *m, const struct match *o,
		  uint64_t at_ns)
{
	const struct alloc *a = live_at(f, o->addr, at_ns);
	bool fits = a && (m->facts.hooks.at[a->hook].has_chunks ? a->usable == o->usable
								: a->size <= o->usable);

	if (!fits) {
		assert_int_equal(o->state, MATCH_UNKNOWN);
		return;
	}
	assert_int_equal(o->state, a->end == NEVER || a->lost ? MATCH_KNOWN : MATCH_FREED);
	assert_int_equal(o->stack, a->stack);
	assert_int_equal(o->tid, a->tid);
	assert_int_equal(o->time_ns, a->t);
	assert_int_equal(o->size, a->size);
	assert_false(o->older);
}

static void test_random(void **state)
{
	uint64_t seen[3] = {0};
	struct fake f;

	(void)state;
	for (int n = 0; n < RECORDINGS; n++) {
		struct match list[ADDRS] = {0};
		uint64_t at_ns, known = 0, bytes = 0;
		struct model m;

		random_recording(&f);
		assert_int_equal(model_load(path, NULL, &m, NULL), 0);
		at_ns = rnd(4) ? rnd(f.end) : f.end;
		for (uint32_t i = 0; i < ADDRS; i++) {
			const struct alloc *a = live_at(&f, 0x10000 + i * 64, at_ns);

			list[i].addr = 0x10000 + i * 64;
			list[i].usable = a && rnd(4) ? a->usable : rnd(400);
		}
		assert_int_equal(match_find(&m, list, ADDRS, at_ns, NULL), 0);
		for (uint32_t i = 0; i < ADDRS; i++) {
			check(&f, &m, &list[i], at_ns);
			seen[list[i].state]++;
			known += list[i].state == MATCH_KNOWN;
			bytes += list[i].state == MATCH_KNOWN ? list[i].size : list[i].usable;
		}
		match_weigh(&m, list, ADDRS);
		assert_int_equal(m.sums.total.live_blocks, ADDRS);
		assert_int_equal(m.sums.total.live_bytes, bytes);
		assert_int_equal(m.sums.group[0].live_blocks, ADDRS - known);
		model_free(&m);
	}
	for (int i = 0; i < 3; i++)
		assert_true(seen[i] > RECORDINGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
