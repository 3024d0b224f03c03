/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interns stacks: turns them into ids, without locks. */
#include "agent/stack.h"

#define PROBES 64
#define SPINS  64

/* As long as there is room, stacks are put into a part of the table that covers fewer pages,
 * because the table is accessed at random. */
#define NEAR	    (1u << 18)
#define NEAR_PROBES 8

static uint32_t arena_put(struct ss_control *c, const uint64_t *pc, int32_t stride, uint32_t n,
			  uint32_t flags)
{
	uint64_t at = __atomic_fetch_add(&c->arena_used, n + 1, __ATOMIC_RELAXED);
	struct ss_stack *s;

	if (at + n + 1 > c->arena_words || at + n + 1 > MPR_STACK_RAW) {
		__atomic_fetch_add(&c->stacks_full, 1, __ATOMIC_RELAXED);
		return MPR_STACK_NONE;
	}
	s = (struct ss_stack *)((uint64_t *)ag_at_offset(c, c->arena) + at);
	s->n = n;
	s->flags = flags;
	for (uint32_t i = 0; i < n; i++, pc += stride)
		s->pc[i] = stride == 1 || !i ? *pc : ag_pc_of(*pc);
	return (uint32_t)at;
}

/* Two threads, or a signal handler, can intern the same stack twice: the recorder compares
 * contents. */
uint32_t ag_intern(struct ss_control *c, uint64_t hash, const uint64_t *pc, int32_t stride,
		   uint32_t n, uint32_t flags)
{
	struct ss_intern *table = ag_at_offset(c, c->interns), *e = NULL;
	uint32_t mask = c->ninterns - 1, i, id;
	uint64_t key;

	hash = ag_mix(hash, flags);
	hash += !hash;
	i = (uint32_t)(hash >> 32) & mask & (NEAR - 1);
	for (uint32_t probe = 0; probe < PROBES; probe++, i = (i + 1) & mask) {
		if (probe == NEAR_PROBES)
			i = (uint32_t)(hash >> 32) & mask;
		e = &table[i];
		key = __atomic_load_n(&e->key, __ATOMIC_ACQUIRE);
		if (!key && __atomic_compare_exchange_n(&e->key, &key, hash, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			id = arena_put(c, pc, stride, n, flags);
			__atomic_store_n(&e->stack, id, __ATOMIC_RELEASE);
			return id;
		}
		if (key != hash)
			continue;
		for (uint32_t spin = 0; spin < SPINS; spin++) {
			id = __atomic_load_n(&e->stack, __ATOMIC_ACQUIRE);
			if (id)
				return id;
			ag_cpu_pause();
		}
		break;
	}
	return arena_put(c, pc, stride, n, flags);
}
