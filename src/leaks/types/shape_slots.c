/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "leaks/types/shape.h"

#define LEAST_LINKED 4 /* blocks of a kind with a pointer to another one */
#define MAX_PLACES   64
#define MORE	     3 /* places as frequent as those of the slots: the blocks have arrays of pointers */

/* A place where pointers to blocks of the same kind are. */
struct place {
	uint32_t offset, delta, count;
	uint32_t inverse[MAX_PLACES]; /* how often that place of the other block leads back */
};

struct finder {
	struct shapes *s;
	uint16_t kind;
	uint32_t nplaces, hint;
	struct place place[MAX_PLACES];
	_Alignas(8) uint8_t from[SHAPE_OFFSETS], to[SHAPE_OFFSETS];
};

static size_t read_block(struct finder *f, uint32_t block, uint8_t *to)
{
	return graph_content(f->s->g, block, f->s->img, to, SHAPE_OFFSETS);
}

/* Return: the other block of the kind that has the address @word, with its offset there; or
 * INDEX_NONE. */
static uint32_t leads_to(const struct finder *f, uint32_t from, uint64_t word, uint32_t *delta)
{
	const struct graph *g = f->s->g;
	const uint32_t to = index_find(&g->index, word);
	uint64_t d;

	if (to == INDEX_NONE || to == from || f->s->block[to].kind != f->kind)
		return INDEX_NONE;
	d = word - g->block[to].addr;
	if (d >= SHAPE_OFFSETS || d % g->arch->word_size)
		return INDEX_NONE;
	*delta = (uint32_t)d;
	return to;
}

/* Return: the index of a place, or .nplaces.  The next one is most often the one after the last. */
static uint32_t place_at(struct finder *f, uint32_t offset, uint32_t delta)
{
	for (uint32_t i = 0; i < f->nplaces; i++) {
		const uint32_t at = (f->hint + i) % f->nplaces;

		if (f->place[at].offset != offset || f->place[at].delta != delta)
			continue;
		f->hint = at + 1;
		return at;
	}
	return f->nplaces;
}

static void find_places(struct finder *f, uint32_t block)
{
	const struct arch *arch = f->s->g->arch;
	const size_t n = read_block(f, block, f->from);

	for (uint32_t o = 0; o + arch->word_size <= n; o += arch->word_size) {
		uint32_t delta, i;

		if (leads_to(f, block, arch_word(arch, f->from + o), &delta) == INDEX_NONE)
			continue;
		i = place_at(f, o, delta);
		if (i == MAX_PLACES)
			continue;
		if (i == f->nplaces)
			f->place[f->nplaces++] = (struct place){.offset = o, .delta = delta};
		f->place[i].count++;
	}
}

static void find_inverse(struct finder *f, uint32_t block)
{
	const struct arch *arch = f->s->g->arch;
	const size_t n = read_block(f, block, f->from);

	for (uint32_t i = 0; i < f->nplaces; i++) {
		uint32_t delta, to;
		size_t there;

		if (f->place[i].offset + arch->word_size > n)
			continue;
		to = leads_to(f, block, arch_word(arch, f->from + f->place[i].offset), &delta);
		if (to == INDEX_NONE || delta != f->place[i].delta)
			continue;
		there = read_block(f, to, f->to);
		for (uint32_t j = 0; j < f->nplaces; j++) {
			const struct place *p = &f->place[j];

			if (j != i && p->offset + arch->word_size <= there &&
			    leads_to(f, to, arch_word(arch, f->to + p->offset), &delta) == block &&
			    delta == p->delta)
				f->place[i].inverse[j]++;
		}
	}
}

static bool is_inverse(const struct finder *f, uint32_t place)
{
	for (uint32_t i = 0; i < f->nplaces; i++) {
		if (f->place[i].count >= LEAST_LINKED &&
		    f->place[i].inverse[place] * 10 >= f->place[i].count * 9)
			return true;
	}
	return false;
}

/* glibc's lists of free chunks lead from the first word of a block to the last one of the block before
 * the next.  Blocks that were not written since have them, too. */
static bool is_free_list(const struct finder *f, const struct place *p)
{
	const uint64_t size = f->s->kinds.at[f->kind].size;

	return !p->offset && p->delta && p->delta + (uint64_t)f->s->g->arch->word_size == size;
}

/* Return: the most frequent place that is not chosen; MAX_PLACES: none is frequent. */
static uint32_t most_frequent(const struct finder *f, const bool *chosen, uint32_t samples)
{
	uint32_t best = MAX_PLACES;

	for (uint32_t i = 0; i < f->nplaces; i++) {
		if (!chosen[i] && !is_free_list(f, &f->place[i]) &&
		    f->place[i].count >= LEAST_LINKED / 2 && f->place[i].count * 20 >= samples &&
		    (best == MAX_PLACES || f->place[i].count > f->place[best].count))
			best = i;
	}
	return best;
}

static int choose(struct finder *f, struct shape_kind *k)
{
	bool chosen[MAX_PLACES] = {false};
	struct shape_nodes *nodes = calloc(1, sizeof(*nodes));
	uint32_t more = 0, last = 0;

	if (!nodes)
		return -ENOMEM;
	k->nodes = nodes;
	while (nodes->n < SHAPE_SLOTS) {
		const uint32_t best = most_frequent(f, chosen, k->sample->n);

		if (best == MAX_PLACES)
			return 0;
		chosen[best] = true;
		last = f->place[best].count;
		nodes->slot[nodes->n++] = (struct shape_slot){.offset = f->place[best].offset,
							      .delta = f->place[best].delta,
							      .many = is_inverse(f, best)};
	}
	for (uint32_t i = 0; i < f->nplaces; i++)
		more += !chosen[i] && f->place[i].count * 2 >= last;
	if (more >= MORE)
		*nodes = (struct shape_nodes){.wide = true};
	return 0;
}

int shape_slots(struct shapes *s)
{
	struct finder *f = malloc(sizeof(*f));
	int ret = f ? 0 : -ENOMEM;

	for (size_t k = 1; k < s->kinds.n && !ret; k++) {
		struct shape_kind *kind = &s->kinds.at[k];

		if (kind->linked < LEAST_LINKED)
			continue;
		memset(f, 0, sizeof(*f));
		f->s = s;
		f->kind = (uint16_t)k;
		for (uint32_t i = 0; i < kind->sample->n; i++)
			find_places(f, kind->sample->block[i]);
		for (uint32_t i = 0; i < kind->sample->n; i++)
			find_inverse(f, kind->sample->block[i]);
		ret = choose(f, kind);
	}
	free(f);
	return ret;
}
