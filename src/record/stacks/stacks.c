/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/by_number.h"

#define FIRST_TABLE 4096u

int stacks_init(struct stacks *s)
{
	memset(s, 0, sizeof(*s));
	s->cap = 1024;
	s->cap_frames = 65536;
	s->cap_addresses = 4096;
	s->table_size = FIRST_TABLE;
	s->at = calloc(s->cap, sizeof(*s->at));
	s->frame = malloc(s->cap_frames * sizeof(*s->frame));
	s->address = calloc(s->cap_addresses, sizeof(*s->address));
	s->addresses = intern_new();
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->n = s->naddresses = 1;
	if (s->at && s->frame && s->address && s->addresses && s->table)
		return 0;
	stacks_free(s);
	return -ENOMEM;
}

void stacks_free(struct stacks *s)
{
	free(s->at);
	free(s->frame);
	free(s->address);
	intern_free(s->addresses);
	free(s->table);
	memset(s, 0, sizeof(*s));
}

static uint32_t hash(const uint32_t *frame, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ frame[i]) * 0x9e3779b97f4a7c15ull;
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
		uint32_t i = hash(s->frame + s->at[id].first, s->at[id].n) & (size - 1);

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
	if (s->nframes + n > s->cap_frames) {
		uint64_t cap = (s->nframes + n) * 2;
		uint32_t *p = reallocarray(s->frame, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->frame = p;
		s->cap_frames = cap;
	}
	return s->n * 2 > s->table_size ? grow_table(s) : 0;
}

/* Return: the id of address @pc, or 0 when out of memory. */
static uint32_t address_id(struct stacks *s, uint64_t pc)
{
	bool fresh;
	uint32_t id;

	if (s->naddresses == s->cap_addresses) {
		uint64_t *p = reallocarray(s->address, s->cap_addresses * 2, sizeof(*p));

		if (!p)
			return 0;
		s->address = p;
		s->cap_addresses *= 2;
	}
	id = intern_pair(s->addresses, pc, 0, &fresh);
	if (id && fresh) {
		s->address[id] = pc;
		s->naddresses = id + 1;
	}
	return id;
}

uint32_t stacks_intern(struct stacks *s, const uint64_t *pc, uint32_t n, uint32_t flags,
		       bool *fresh)
{
	uint32_t *frame, i;

	*fresh = false;
	if (room(s, n))
		return 0;
	frame = s->frame + s->nframes;
	for (i = 0; i < n; i++) {
		frame[i] = address_id(s, pc[i]);
		if (!frame[i])
			return 0;
	}
	for (i = hash(frame, n) & (s->table_size - 1); s->table[i];
	     i = (i + 1) & (s->table_size - 1)) {
		const struct stack *k = &s->at[s->table[i]];

		if (k->n == n && k->flags == flags &&
		    !memcmp(s->frame + k->first, frame, n * sizeof(*frame)))
			return s->table[i];
	}
	s->at[s->n] = (struct stack){.first = s->nframes, .n = n, .flags = flags};
	s->nframes += n;
	s->table[i] = s->n;
	*fresh = true;
	return s->n++;
}

void stacks_pcs(const struct stacks *s, uint32_t id, uint64_t *pc)
{
	const uint32_t *frame = s->frame + s->at[id].first;

	for (uint32_t i = 0; i < s->at[id].n; i++)
		pc[i] = s->address[frame[i]];
}

uint64_t *stacks_addresses(const struct stacks *s, uint32_t from, uint32_t piece, uint64_t *n)
{
	uint64_t *pc = malloc((s->naddresses + 1) * sizeof(*pc));
	bool *wanted = calloc(s->naddresses + 1, sizeof(*wanted));

	*n = 0;
	for (uint32_t id = from; id < s->n && wanted; id++) {
		const struct stack *k = &s->at[id];

		if (piece ? k->piece != piece : !k->piece)
			continue;
		for (uint32_t i = 0; i < k->n; i++)
			wanted[s->frame[k->first + i]] = true;
	}
	for (uint32_t i = 1; i < s->naddresses && pc && wanted; i++) {
		if (wanted[i])
			pc[(*n)++] = s->address[i];
	}
	if (*n)
		qsort(pc, *n, sizeof(*pc), by_number);
	free(wanted);
	return pc;
}
