/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state that a recorder takes over fits its budget without changing the sums, and the ledger
 * counts what was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "record/pieces/carry.h"
#include "record/ring.h"

/* Stacks of 10 frames; stack i has one live block of i * 1000 bytes. */
static void fill(struct carry *c, uint32_t n)
{
	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i <= n; i++) {
		struct carried_stack s = {0, i ? 10 : 0, 0, 1000ull * i, i != 0, false};

		assert_int_equal(vec_push(&c->stacks, s), 0);
	}
}

static uint64_t kept_bytes(const struct carry *c)
{
	uint64_t sum = 0;

	vec_for_each (&c->stacks, s)
		sum += s->cleared ? 0 : s->bytes;
	return sum;
}

static void all_fit(void **state)
{
	struct carry c;

	(void)state;
	fill(&c, 100);
	assert_int_equal(carry_fit(&c, 100 * carry_stack_cost(10)), 0);
	assert_int_equal(c.cleared_stacks, 0);
	assert_int_equal(kept_bytes(&c), 1000 * 5050);
	carry_free(&c);
}

static void smallest_go_first(void **state)
{
	struct carry c;

	(void)state;
	fill(&c, 100);
	assert_int_equal(carry_fit(&c, 40 * carry_stack_cost(10) + 1), 0);
	assert_int_equal(c.cleared_stacks, 60);
	for (uint32_t i = 1; i <= 100; i++)
		assert_int_equal(c.stacks.at[i].cleared, i <= 60);
	assert_int_equal(kept_bytes(&c) + c.cleared_bytes, 1000 * 5050);
	carry_free(&c);
}

static void nothing_fits(void **state)
{
	struct carry c;

	(void)state;
	fill(&c, 3);
	assert_int_equal(carry_fit(&c, 0), 0);
	assert_int_equal(c.cleared_stacks, 3);
	assert_int_equal(c.cleared_bytes, 6000);
	assert_false(c.stacks.at[0].cleared); /* the empty stack 0 takes no room */
	carry_free(&c);
}

/* Return: a session block with one thread slot and a ring of 4096 bytes. */
static struct ss_control *block(void)
{
	struct ss_control *c = aligned_alloc(4096, 8 * 4096);

	memset(c, 0, 8 * 4096);
	c->slots = 4096;
	c->nslots = 1;
	c->slot_ring = 4096;
	c->ring_size = 4096;
	c->slot_stride = 3 * 4096;
	return c;
}

static int take(struct ss_control *c, const struct ss_account *account, struct ledger *l)
{
	struct mem mem;
	int ret = mem_open(&mem, getpid());

	assert_int_equal(ret, 0);
	ret = ledger_take(c, c, &mem, (uintptr_t)account, l);
	mem_close(&mem);
	return ret;
}

static void ledger_balances(void **state)
{
	struct ss_control *c = block();
	struct ss_thread *t = (void *)((char *)c + 4096);
	struct perf_event_mmap_page *page = (void *)((char *)t + 4096);
	struct mpr_free f = {{MPR_FREE, 0, sizeof(f)}, 1, 4096};
	struct mp_losses l = {.seen_alloc = 100, .seen_free = 40, .queue_free = 5};
	struct ss_account account = {.tp = 1};
	struct ledger ledger;

	(void)state;
	t->tp = 1;
	t->written[MPR_LOST_ALLOC] = 100;
	t->written[MPR_LOST_FREE] = 48;
	memcpy((char *)page + 4096, &f, sizeof(f));
	memcpy((char *)page + 4096 + sizeof(f), &f, sizeof(f));
	page->data_head = 2 * sizeof(f);
	assert_int_equal(take(c, &account, &ledger), 0);
	assert_true(ledger.exact);
	assert_int_equal(ledger.waiting[MPR_LOST_FREE], 2);
	/* 48 written, 40 seen, 5 dropped, 2 in the ring: one was lost. */
	assert_int_equal(ledger_settle(&ledger, &l), 1);
	assert_int_equal(l.restart_free, 1);
	assert_int_equal(l.restart_alloc, 0);
	/* A record that was counted as lost is not counted again. */
	assert_int_equal(ledger_settle(&ledger, &l), 0);
	free(c);
}

static void busy_thread_is_said(void **state)
{
	struct ss_control *c = block();
	struct ss_thread *t = (void *)((char *)c + 4096);
	struct ss_account account = {.tp = 1, .depth = 1};
	struct ledger ledger;

	(void)state;
	t->tp = 1;
	assert_int_equal(take(c, &account, &ledger), 0);
	assert_false(ledger.exact);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_fit),
	    cmocka_unit_test(smallest_go_first),
	    cmocka_unit_test(nothing_fits),
	    cmocka_unit_test(ledger_balances),
	    cmocka_unit_test(busy_thread_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
