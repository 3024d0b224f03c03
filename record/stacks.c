/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE 4096u

int stacks_init(struct stacks *s)
{
	memset(s, 0, sizeof(*s));
	s->cap = 1024;
	s->cap_pc = 65536;
	s->table_size = FIRST_TABLE;
	s->at = calloc(s->cap, sizeof(*s->at));
	s->pc = malloc(s->cap_pc * sizeof(*s->pc));
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->n = 1;
	if (s->at && s->pc && s->table)
		return 0;
	stacks_free(s);
	return -ENOMEM;
}

void stacks_free(struct stacks *s)
{
	free(s->at);
	free(s->pc);
	free(s->table);
	memset(s, 0, sizeof(*s));
}

static uint32_t hash(const uint64_t *pc, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ pc[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 32);
}

static int grow_table(struct stacks *s)
{
	uint32_t size = s->table_size * 2;
	uint32_t *t = calloc(size, sizeof(*t));

	if (!t)
		return -ENOMEM;
	for (uint32_t id = 1; id < s->n; id++) {
		uint32_t i = hash(s->pc + s->at[id].first, s->at[id].n) & (size - 1);

		while (t[i])
			i = (i + 1) & (size - 1);
		t[i] = id;
	}
	free(s->table);
	s->table = t;
	s->table_size = size;
	return 0;
}

static int room(struct stacks *s, uint32_t n)
{
	if (s->n == s->cap) {
		struct stack *p = reallocarray(s->at, s->cap * 2, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->at = p;
		s->cap *= 2;
	}
	if (s->npc + n > s->cap_pc) {
		uint64_t cap = (s->npc + n) * 2;
		uint64_t *p = reallocarray(s->pc, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->pc = p;
		s->cap_pc = cap;
	}
	return s->n * 2 > s->table_size ? grow_table(s) : 0;
}

uint32_t stacks_intern(struct stacks *s, const uint64_t *pc, uint32_t n, uint32_t flags,
		       bool *fresh)
{
	uint32_t i;

	*fresh = false;
	if (room(s, n))
		return 0;
	for (i = hash(pc, n) & (s->table_size - 1); s->table[i];
	     i = (i + 1) & (s->table_size - 1)) {
		const struct stack *k = &s->at[s->table[i]];

		if (k->n == n && k->flags == flags &&
		    !memcmp(s->pc + k->first, pc, n * sizeof(*pc)))
			return s->table[i];
	}
	s->at[s->n] = (struct stack){.first = s->npc, .n = n, .flags = flags};
	memcpy(s->pc + s->npc, pc, n * sizeof(*pc));
	s->npc += n;
	s->table[i] = s->n;
	*fresh = true;
	return s->n++;
}
