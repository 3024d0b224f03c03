/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/intern.h"

#include <stdlib.h>
#include <string.h>
#include "lib/fnv.h"
#include "lib/vec.h"

struct entry {
	uint64_t a, b; /* a pair, or the hash and the address of a text */
};

struct intern {
	VEC(struct entry) entries; /* index: id - 1 */
	uint32_t *slot;		   /* ids, 0: empty; open addressing, at most half full */
	uint32_t mask;
	bool texts;
};

static uint64_t mix(uint64_t v)
{
	v ^= v >> 32;
	v *= 0x9e3779b97f4a7c15ull;
	v ^= v >> 29;
	v *= 0xbf58476d1ce4e5b9ull;
	return v ^ v >> 32;
}

struct intern *intern_new(void)
{
	struct intern *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = 1023;
	t->slot = calloc(t->mask + 1, sizeof(*t->slot));
	if (t->slot)
		return t;
	free(t);
	return NULL;
}

void intern_free(struct intern *t)
{
	if (!t)
		return;
	vec_for_each (&t->entries, e) {
		if (t->texts)
			free((char *)(uintptr_t)e->b);
	}
	vec_free(&t->entries);
	free(t->slot);
	free(t);
}

static uint64_t hash_of(const struct intern *t, const struct entry *e)
{
	return t->texts ? mix(e->a) : mix(e->a + mix(e->b));
}

static bool grow_table(struct intern *t)
{
	uint32_t mask = t->mask * 2 + 1, *slot = calloc((size_t)mask + 1, sizeof(*slot));

	if (!slot)
		return false;
	for (uint32_t id = 1; id <= t->entries.n; id++) {
		uint64_t at = hash_of(t, &t->entries.at[id - 1]) & mask;

		while (slot[at])
			at = (at + 1) & mask;
		slot[at] = id;
	}
	free(t->slot);
	t->slot = slot;
	t->mask = mask;
	return true;
}

static bool same(const struct intern *t, const struct entry *have, const struct entry *want)
{
	if (have->a != want->a)
		return false;
	if (!t->texts)
		return have->b == want->b;
	return !strcmp((const char *)(uintptr_t)have->b, (const char *)(uintptr_t)want->b);
}

static uint32_t find_entry(struct intern *t, struct entry want, bool *fresh)
{
	uint64_t at = hash_of(t, &want) & t->mask;

	if (fresh)
		*fresh = false;
	for (; t->slot[at]; at = (at + 1) & t->mask) {
		if (same(t, &t->entries.at[t->slot[at] - 1], &want))
			return t->slot[at];
	}
	if (t->entries.n >= t->mask / 2) {
		if (!grow_table(t))
			return 0;
		return find_entry(t, want, fresh);
	}
	if (t->texts)
		want.b = (uintptr_t)strdup((const char *)(uintptr_t)want.b);
	if (t->texts && !want.b)
		return 0;
	if (vec_push(&t->entries, want)) {
		if (t->texts)
			free((char *)(uintptr_t)want.b);
		return 0;
	}
	t->slot[at] = (uint32_t)t->entries.n;
	if (fresh)
		*fresh = true;
	return t->slot[at];
}

uint32_t intern_pair(struct intern *t, uint64_t a, uint64_t b, bool *fresh)
{
	return find_entry(t, (struct entry){a, b}, fresh);
}

uint32_t intern_text(struct intern *t, const char *text, bool *fresh)
{
	t->texts = true;
	return find_entry(t, (struct entry){fnv_text(text), (uintptr_t)text}, fresh);
}
