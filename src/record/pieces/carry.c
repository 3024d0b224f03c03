/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/carry.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "record/ring.h"
#include "record/order/recent.h"
#include "record/wire.h"

#define TRIES 1000 /* attempts to read a ring and its counters consistently */

void carry_free(struct carry *c)
{
	vec_for_each (&c->modules, m)
		free((char *)m->path);
	vec_free(&c->modules);
	vec_free(&c->blocks);
	vec_free(&c->stacks);
	vec_free(&c->pc);
	vec_free(&c->foreign_reallocs);
}

uint64_t carry_stack_cost(uint32_t n)
{
	return 16 + 8ull * n;
}

struct ranked {
	uint64_t bytes;
	uint32_t stack;
};

static int by_bytes(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

int carry_fit(struct carry *c, uint64_t budget)
{
	struct ranked *rank = calloc(c->stacks.n + 1, sizeof(*rank));
	uint64_t cost = 0;
	size_t n = 0;

	if (!rank)
		return -ENOMEM;
	for (size_t i = 1; i < c->stacks.n; i++) {
		if (!c->stacks.at[i].blocks)
			continue;
		cost += carry_stack_cost(c->stacks.at[i].n);
		rank[n++] = (struct ranked){c->stacks.at[i].bytes, (uint32_t)i};
	}
	qsort(rank, n, sizeof(*rank), by_bytes);
	for (size_t i = 0; i < n && cost > budget; i++) {
		struct carried_stack *s = &c->stacks.at[rank[i].stack];

		s->cleared = true;
		cost -= carry_stack_cost(s->n);
		c->cleared_stacks++;
		c->cleared_bytes += s->bytes;
	}
	free(rank);
	return 0;
}

/* ------------------------------------------------------------------ the ledger -- */

static bool in_hook(const struct mem *mem, uint64_t account)
{
	uint32_t depth = 1;

	return mem_read(mem, account + offsetof(struct ss_account, depth), &depth, sizeof(depth)) ||
	       depth;
}

static bool quiet(const struct ss_thread *t, const struct perf_event_mmap_page *page,
		  const struct mem *mem, uint64_t account, uint64_t written[MPR_LOST_KINDS],
		  uint64_t *head)
{
	uint64_t again[MPR_LOST_KINDS];

	memcpy(written, t->written, sizeof(again));
	*head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	/* The agent publishes and counts a record inside a hook. */
	if (in_hook(mem, account))
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(again, t->written, sizeof(again));
	return !memcmp(written, again, sizeof(again)) &&
	       __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) == *head;
}

static void count_waiting(const struct ss_thread *t, struct ring *r, uint64_t head, uint8_t *buf,
			  struct ledger *l)
{
	uint64_t n, at = 0;

	recent_continue(t, r);
	n = head - r->at;
	n = n <= r->size ? n & ~7ull : r->size;
	ring_copy(r, buf, n);
	l->waiting[MPR_LOST_FREE] += recent_waiting(t, r);
	while (at < n && wire_valid(buf + at, n - at)) {
		const struct mpr_header *h = (const void *)(buf + at);

		l->waiting[mpr_kind(mpr_type(h))]++;
		l->waiting[MPR_LOST_FREE] += mpr_ended(h) != 0;
		at += h->size;
	}
}

int ledger_take(const struct ss_control *block, const struct ss_control *layout,
		const struct mem *mem, uint64_t accounts, struct ledger *l)
{
	uint8_t *buf = malloc(layout->ring_size);

	memset(l, 0, sizeof(*l));
	l->exact = true;
	if (!buf)
		return -ENOMEM;
	for (uint32_t i = 0; i < layout->nslots; i++) {
		char *at = (char *)block + layout->slots + i * layout->slot_stride;
		const struct ss_thread *t = (const void *)at;
		struct perf_event_mmap_page *page = (void *)(at + layout->slot_ring);
		struct ring ring = ring_of(page, (uint8_t *)page + 4096, layout->ring_size);
		uint64_t written[MPR_LOST_KINDS], head;
		int tries = 0;

		if (!__atomic_load_n(&t->tp, __ATOMIC_ACQUIRE))
			continue;
		while (!quiet(t, page, mem, accounts + i * sizeof(struct ss_account), written,
			      &head) &&
		       ++tries < TRIES)
			sched_yield();
		l->exact &= tries < TRIES;
		for (int k = 0; k < MPR_LOST_KINDS; k++)
			l->written[k] += written[k];
		count_waiting(t, &ring, head, buf, l);
	}
	free(buf);
	return 0;
}

static uint64_t missing(const struct ledger *l, enum mpr_lost kind, uint64_t seen, uint64_t dropped)
{
	uint64_t known = seen + dropped + l->waiting[kind];

	return l->written[kind] > known ? l->written[kind] - known : 0;
}

uint64_t ledger_settle(const struct ledger *l, struct mp_losses *s)
{
	uint64_t alloc =
	    missing(l, MPR_LOST_ALLOC, s->seen_alloc, s->queue_alloc + s->restart_alloc);
	uint64_t gone = missing(l, MPR_LOST_FREE, s->seen_free, s->queue_free + s->restart_free);
	uint64_t re =
	    missing(l, MPR_LOST_REALLOC, s->seen_realloc, s->queue_realloc + s->restart_realloc);
	uint64_t map = missing(l, MPR_LOST_MAP, s->seen_map, s->queue_map + s->restart_map);

	s->restart_alloc += alloc;
	s->restart_free += gone;
	s->restart_realloc += re;
	s->restart_map += map;
	return alloc + gone + re + map;
}
