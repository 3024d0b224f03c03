/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/tallies.h"

#include <errno.h>
#include <stdlib.h>

int tallies_init(struct tallies *t, uint32_t rings)
{
	t->latest = calloc(rings, sizeof(*t->latest));
	return t->latest ? thread_numbers_init(&t->numbers) : -ENOMEM;
}

void tallies_free(struct tallies *t)
{
	vec_free(&t->stacks);
	vec_free(&t->live_variance);
	vec_free(&t->mapped);
	vec_free(&t->threads);
	thread_numbers_free(&t->numbers);
	free(t->latest);
}

static uint32_t *list_of(struct tallies *t, uint64_t addr)
{
	return &t->list[(addr >> 4 ^ addr >> 12) % LATEST_LISTS];
}

/* Takes the latest block of @ring, which has one, out of its list. */
static void take_ring(struct tallies *t, uint32_t ring)
{
	uint32_t *at = list_of(t, t->latest[ring].addr);

	while (*at != ring + 1)
		at = &t->latest[*at - 1].next;
	*at = t->latest[ring].next;
	t->latest[ring].addr = 0;
}

/* If there are two at an address, the end of one was not recorded: the newer one is first in the list. */
static void set_latest(struct tallies *t, uint32_t ring, uint64_t addr)
{
	struct latest *l = &t->latest[ring];
	uint32_t *list = list_of(t, addr);

	if (l->addr)
		take_ring(t, ring);
	l->addr = addr;
	l->next = *list;
	*list = ring + 1;
}

static inline struct tally *of_stack(struct tallies *t, uint32_t stack)
{
	if (vec_reach(&t->stacks, stack))
		return NULL;
	return &t->stacks.at[stack];
}

/* Finds or adds the tally of the thread @tid, which owns @ring.  Return: it, or NULL when out of memory. */
static struct thread_tally *find_thread(struct tallies *t, uint32_t ring, uint32_t tid)
{
	uint32_t number;

	t->latest[ring].tally = 0;
	if (thread_number(&t->numbers, tid, &number) || vec_reach(&t->threads, number))
		return NULL;
	t->threads.at[number].tid = tid;
	t->latest[ring].tally = number + 1;
	return &t->threads.at[number];
}

static inline struct thread_tally *of_thread(struct tallies *t, uint32_t ring, uint32_t tid)
{
	uint32_t known = t->latest[ring].tally;

	return known && t->threads.at[known - 1].tid == tid ? &t->threads.at[known - 1]
							    : find_thread(t, ring, tid);
}

static inline int count_call(struct tallies *t, const struct tallied *a, bool temporary)
{
	struct tally *stack = of_stack(t, a->stack);
	struct thread_tally *thread = NULL;

	if (a->tid)
		thread = of_thread(t, a->ring, a->tid);
	else
		t->latest[a->ring].tally = 0;
	if (!stack || (a->tid && !thread))
		return -ENOMEM;
	stack->allocations += a->of.blocks;
	stack->allocated_bytes += a->of.bytes;
	stack->temporary += temporary ? a->of.blocks : 0;
	stack->temporary_bytes += temporary ? a->of.bytes : 0;
	if (!thread)
		return 0;
	thread->allocations += a->of.blocks;
	thread->allocated_bytes += a->of.bytes;
	thread->temporary += temporary ? a->of.blocks : 0;
	return 0;
}

int tallies_allocated(struct tallies *t, const struct tallied *a)
{
	set_latest(t, a->ring, a->addr);
	return count_call(t, a, false);
}

int tallies_pair(struct tallies *t, const struct tallied *a)
{
	if (t->latest[a->ring].addr)
		take_ring(t, a->ring);
	return count_call(t, a, true);
}

bool tallies_ended(struct tallies *t, uint32_t ring, uint64_t addr)
{
	for (uint32_t at = *list_of(t, addr); at; at = t->latest[at - 1].next) {
		if (t->latest[at - 1].addr == addr) {
			take_ring(t, at - 1);
			return at == ring + 1;
		}
	}
	return false;
}

void tallies_temporary(struct tallies *t, uint32_t ring, uint32_t stack, uint64_t blocks,
		       uint64_t bytes)
{
	uint32_t thread = t->latest[ring].tally;

	if (stack < t->stacks.n) {
		t->stacks.at[stack].temporary += blocks;
		t->stacks.at[stack].temporary_bytes += bytes;
	}
	if (thread)
		t->threads.at[thread - 1].temporary += blocks;
}

void tallies_vary(struct tallies *t, uint32_t stack, double variance)
{
	if (vec_reach(&t->live_variance, stack))
		return;
	t->live_variance.at[stack] += variance;
}

double tallies_variance(const struct tallies *t, uint32_t stack)
{
	return stack < t->live_variance.n ? t->live_variance.at[stack] : 0;
}

int tallies_map(struct tallies *t, uint32_t stack, uint64_t bytes)
{
	if (vec_reach(&t->mapped, stack))
		return -ENOMEM;
	t->mapped.at[stack].bytes += bytes;
	t->mapped.at[stack].mappings++;
	return 0;
}

struct mapped_tally tallies_mapped(const struct tallies *t, uint32_t stack)
{
	return stack < t->mapped.n ? t->mapped.at[stack] : (struct mapped_tally){0};
}
