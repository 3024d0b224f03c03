/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "leaks/types/shape.h"
#include "lib/intern.h"

#define MAX_KINDS   UINT16_MAX
#define SMALL	    4096
#define AHEAD	    32
#define ARRAY_LEAST 8 /* pointers */

/* Kinds by size and by name. */
struct numbers {
	uint16_t small[SMALL];
	struct intern *large; /* by size */
	uint16_t *of_large;   /* by its id - 1 */
	uint32_t nlarge;
	uint16_t *of_name; /* by id - 1 */
};

/* Return: the number of a new kind; 0: there are too many, or no memory. */
static uint16_t add_kind(struct shapes *s, uint64_t size, uint32_t name)
{
	const struct shape_kind fresh = {.size = size, .name = name};

	if (s->kinds.n >= MAX_KINDS || vec_push(&s->kinds, fresh))
		return 0;
	return (uint16_t)(s->kinds.n - 1);
}

/* Objects of languages have containers of their own, and so have nodes that debug information has
 * named. */
static bool excluded(const struct block_name *name)
{
	return (name->source != NAME_VTABLE && name->source != NAME_DWARF) ||
	       strstr(name->text, " of ");
}

static uint16_t named_kind(struct shapes *s, struct numbers *k, uint32_t id, uint64_t size)
{
	uint16_t *kind = &k->of_name[id - 1];

	if (*kind == UINT16_MAX)
		*kind = excluded(&s->n->list.at[id - 1]) ? 0 : add_kind(s, size, id);
	if (*kind && s->kinds.at[*kind].size != size)
		s->kinds.at[*kind].size = 0;
	return *kind;
}

static uint16_t sized_kind(struct shapes *s, struct numbers *k, uint64_t size)
{
	uint32_t id;
	bool first;

	if (size < SMALL) {
		if (!k->small[size])
			k->small[size] = add_kind(s, size, 0);
		return k->small[size];
	}
	id = intern_pair(k->large, size, 0, &first);
	if (!id || id > MAX_KINDS)
		return 0;
	if (first)
		k->of_large[id - 1] = add_kind(s, size, 0);
	return k->of_large[id - 1];
}

static int number_kinds(struct shapes *s)
{
	struct numbers *k = calloc(1, sizeof(*k));
	int ret = -ENOMEM;

	if (!k)
		return ret;
	k->large = intern_new();
	k->of_large = calloc(MAX_KINDS, sizeof(*k->of_large));
	k->of_name = malloc((s->n->list.n + 1) * sizeof(*k->of_name));
	if (k->large && k->of_large && k->of_name && add_kind(s, 0, 0) == 0 && s->kinds.n == 1) {
		memset(k->of_name, 0xff, s->n->list.n * sizeof(*k->of_name));
		for (uint32_t i = 0; i < s->g->n; i++) {
			const uint64_t size = s->g->block[i].size;
			const bool named = block_names_has(s->n, i);

			s->block[i].kind =
			    named ? named_kind(s, k, s->n->of[i], size) : sized_kind(s, k, size);
			s->kinds.at[s->block[i].kind].blocks++;
		}
		ret = 0;
	}
	intern_free(k->large);
	free(k->of_large);
	free(k->of_name);
	free(k);
	return ret;
}

/* Takes every .step-th of the blocks with a pointer to one of their own kind; doubles the step when
 * the sample is full. */
static int sample(struct shape_kind *k, uint32_t block)
{
	struct shape_sample *a = k->sample;

	k->linked++;
	if (!a) {
		a = k->sample = calloc(1, sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->step = 1;
	}
	if (a->skip) {
		a->skip--;
		return 0;
	}
	if (a->n == SHAPE_SAMPLE) {
		for (uint32_t i = 0; i < SHAPE_SAMPLE / 2; i++)
			a->block[i] = a->block[2 * i];
		a->n = SHAPE_SAMPLE / 2;
		a->step *= 2;
	}
	a->block[a->n++] = block;
	a->skip = a->step - 1;
	return 0;
}

/* Looks at the kinds that a block's pointers lead to: its own, or in most cases another one. */
static int look_at_block(struct shapes *s, uint32_t i)
{
	const struct graph *g = s->g;
	const uint32_t begin = g->first[i], end = g->first[i + 1];
	struct shape_array a = {i, 0};
	uint32_t votes = 0, most = 0;
	bool linked = false;

	for (uint32_t e = begin; e < end; e++) {
		uint16_t k;

		if (e + AHEAD < g->to.n)
			__builtin_prefetch(&s->block[g->to.at[e + AHEAD]].kind);
		k = s->block[g->to.at[e]].kind;
		linked |= k == s->block[i].kind;
		/* The majority vote of Boyer and Moore. */
		if (!votes)
			a.kind = k;
		votes += k == a.kind ? 1 : UINT32_MAX;
	}
	if (linked && s->block[i].kind && sample(&s->kinds.at[s->block[i].kind], i))
		return -ENOMEM;
	if (end - begin < ARRAY_LEAST || !a.kind || a.kind == s->block[i].kind)
		return 0;
	for (uint32_t e = begin; e < end; e++)
		most += s->block[g->to.at[e]].kind == a.kind;
	return most >= ARRAY_LEAST && most * 2ull >= end - begin ? vec_push(&s->arrays, a) : 0;
}

int shape_kinds(struct shapes *s)
{
	int ret = number_kinds(s);

	for (uint32_t i = 0; i < s->g->n && !ret; i++)
		ret = look_at_block(s, i);
	return ret;
}
