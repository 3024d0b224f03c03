/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include "leaks/types/shape.h"

#define AHEAD	32   /* a power of two */
#define ADOPTED 0x80 /* in .mark */
/* Pointers to larger blocks, of all pointers: with more, these are another type. */
#define MAX_ODD(kind) ((kind)->blocks / 5 + 16)

/* A word on its way: first the index is fetched, AHEAD words later what it says about the block. */
struct pending {
	const struct index_record *record;
	uint64_t word;
	uint32_t from, to;
	uint8_t slot;
};

struct reader {
	struct shapes *s;
	bool failed;
	struct pending queue[2 * AHEAD];
	uint32_t head;
};

static void look_up(struct reader *r, struct pending *p)
{
	const struct shapes *s = r->s;

	p->to = p->record ? index_in(&s->g->index, p->record, p->word) : INDEX_NONE;
	if (p->to == INDEX_NONE)
		return;
	__builtin_prefetch(&s->g->block[p->to]);
	__builtin_prefetch(&s->block[p->to]);
}

/* Has @kind a slot at the same place?  Then nodes of one type have different sizes, if the slot is no
 * way back: the head of a list with ways back looks like a node, too. */
static bool same_place(const struct shapes *s, uint16_t kind, const struct shape_slot *slot)
{
	const struct shape_nodes *nodes = s->kinds.at[kind].nodes;

	for (uint8_t i = 0; nodes && !slot->many && !s->kinds.at[kind].name && i < nodes->n; i++) {
		if (nodes->slot[i].offset == slot->offset && nodes->slot[i].delta == slot->delta)
			return !nodes->slot[i].many;
	}
	return false;
}

/* Notes a pointer to a block of another kind, to the place where such slots lead, if both might be of
 * one type. */
static void note_odd(struct reader *r, const struct pending *p, const struct shape_slot *slot)
{
	struct shapes *s = r->s;
	const uint16_t kind = s->block[p->from].kind;
	struct shape_kind *k = &s->kinds.at[kind];
	struct shape_odd odd = {p->from, p->to, kind, p->slot, ODD_LARGER};

	if (k->name)
		return;
	if (shape_misnamed(s, kind, p->to)) {
		odd.why = ODD_FEW;
	} else if (!shape_odd(s, kind, p->to)) {
		if (slot->many || block_names_has(s->n, p->to))
			return;
		if (same_place(s, s->block[p->to].kind, slot))
			odd.why = ODD_PLACE;
		else if (!s->kinds.at[s->block[p->to].kind].nodes)
			odd.why = ODD_FEW;
		else
			return;
	}
	k->odd += odd.why != ODD_PLACE;
	if ((odd.why == ODD_PLACE || k->odd < MAX_ODD(k)) && vec_push(&s->odd, odd))
		r->failed = true;
}

/* Random pointers lead to one block several times. */
static void check(struct shape_slot *slot)
{
	slot->off = !slot->many && slot->repeated > 64 + slot->links / 50;
}

static void set_link(struct reader *r, uint32_t from, uint8_t p, uint32_t to)
{
	struct shapes *s = r->s;
	const struct shape_shared shared = {to, p};
	struct shape_slot *slot = &s->kinds.at[s->block[from].kind].nodes->slot[p];

	slot->links++;
	s->link[p][from] = 1 + to;
	if (s->block[to].mark >> p & 1) {
		slot->repeated++;
		check(slot);
		if (!slot->off && !slot->many && vec_push(&s->shared, shared))
			r->failed = true;
	}
	s->block[to].mark |= (uint8_t)(1u << p);
}

static void note(struct reader *r, const struct pending *p)
{
	struct shapes *s = r->s;
	const uint16_t kind = s->block[p->from].kind;
	struct shape_slot *slot;

	if (p->to == INDEX_NONE || p->to == p->from)
		return;
	slot = &s->kinds.at[kind].nodes->slot[p->slot];
	if (s->block[p->to].kind == kind && s->g->block[p->to].addr + slot->delta == p->word) {
		set_link(r, p->from, p->slot, p->to);
		return;
	}
	slot->foreign++;
	s->link[p->slot][p->from] = SHAPE_FOREIGN | p->to;
	if (s->g->block[p->to].addr + slot->delta == p->word)
		note_odd(r, p, slot);
}

static void queue(struct reader *r, uint64_t word, uint32_t from, uint8_t slot)
{
	const uint32_t mask = 2 * AHEAD - 1;
	struct pending *p = &r->queue[r->head & mask];

	if (r->head >= 2 * AHEAD)
		note(r, p);
	*p = (struct pending){index_record(&r->s->g->index, word), word, from, INDEX_NONE, slot};
	__builtin_prefetch(p->record);
	r->head++;
	if (r->head > AHEAD)
		look_up(r, &r->queue[(r->head - 1 - AHEAD) & mask]);
}

static void flush(struct reader *r)
{
	const uint32_t mask = 2 * AHEAD - 1, waiting = r->head < AHEAD ? r->head : AHEAD,
		       all = r->head < 2 * AHEAD ? r->head : 2 * AHEAD;

	for (uint32_t i = r->head - waiting; i != r->head; i++)
		look_up(r, &r->queue[i & mask]);
	for (uint32_t i = r->head - all; i != r->head; i++)
		note(r, &r->queue[i & mask]);
	r->head = 0;
}

/* Return: the bytes up to the end of the last slot. */
static uint32_t slots_end(const struct shapes *s, const struct shape_nodes *nodes)
{
	uint32_t end = 0;

	for (uint8_t i = 0; i < nodes->n; i++) {
		if (nodes->slot[i].offset >= end)
			end = nodes->slot[i].offset + s->g->arch->word_size;
	}
	return end;
}

/* @p: the content of @block up to the end of the last slot */
static void read_slots(struct reader *r, uint32_t block, const uint8_t *p)
{
	const struct shape_nodes *nodes = shape_nodes_of(r->s, block);

	for (uint8_t i = 0; i < nodes->n; i++) {
		uint64_t word = arch_word(r->s->g->arch, p + nodes->slot[i].offset);

		if (!nodes->slot[i].off && word - r->s->g->index.low < r->s->g->index.span)
			queue(r, word, block, i);
	}
}

static void read_all(struct reader *r)
{
	struct image_view view = {0};

	for (uint32_t i = 0; i < r->s->g->n; i++) {
		const struct shape_nodes *nodes = shape_nodes_of(r->s, i);
		const uint32_t end = nodes ? slots_end(r->s, nodes) : 0;
		const struct heap_block *b = &r->s->g->block[i];
		const uint8_t *p;

		/* Blocks of one name can differ in size. */
		if (!end || end > b->size)
			continue;
		p = image_view(r->s->img, &view, b->addr, end);
		if (p)
			read_slots(r, i, p);
	}
	flush(r);
	image_view_free(&view);
}

/* Makes @block one of @kind. */
static void adopt(struct reader *r, uint32_t block, uint16_t kind)
{
	_Alignas(8) uint8_t content[SHAPE_OFFSETS] = {0};
	struct shapes *s = r->s;
	const uint32_t end = slots_end(s, s->kinds.at[kind].nodes);
	const struct heap_block *b = &s->g->block[block];

	s->kinds.at[kind].varied += !shape_odd(s, kind, block) && !shape_misnamed(s, kind, block);
	s->block[block].kind = kind;
	s->block[block].mark = ADOPTED;
	for (int p = 0; p < SHAPE_SLOTS && s->link[p]; p++)
		s->link[p][block] = 0;
	image_read(s->img, b->addr, content, b->size < end ? (size_t)b->size : end);
	read_slots(r, block, content);
	flush(r);
}

/* Of two kinds whose blocks are of one type, the one with more blocks adopts. */
static bool is_larger(const struct shapes *s, uint16_t a, uint16_t b)
{
	const uint32_t x = s->kinds.at[a].blocks, y = s->kinds.at[b].blocks;

	return x != y ? x > y : a < b;
}

/* Has block @o->to an end, or a way on, where a node has it? */
static bool leads_on(const struct shapes *s, const struct shape_odd *o)
{
	const struct shape_slot *slot = &s->kinds.at[o->kind].nodes->slot[o->slot];
	const struct heap_block *b = &s->g->block[o->to];
	uint64_t word;
	uint32_t next;

	if (b->size < slot->offset + (uint64_t)s->g->arch->word_size ||
	    !image_word(s->img, b->addr + slot->offset, &word))
		return false;
	next = word ? index_find(&s->g->index, word) : INDEX_NONE;
	return !word || (next != INDEX_NONE && next != o->to &&
			 s->g->block[next].addr + slot->delta == word);
}

/* Is it still certain enough that both blocks are of one type? */
static bool is_of_type(const struct shapes *s, const struct shape_odd *o)
{
	const struct shape_kind *k = &s->kinds.at[o->kind];
	const struct shape_slot *slot = &k->nodes->slot[o->slot];

	if (s->block[o->from].kind != o->kind || slot->off)
		return false;
	switch (o->why) {
	case ODD_LARGER:
		return k->odd < MAX_ODD(k);
	case ODD_PLACE:
		return true;
	default:
		return k->odd < MAX_ODD(k) && slot->foreign * 5ull <= slot->links && leads_on(s, o);
	}
}

static void settle_odd_slot(struct reader *r, const struct shape_odd *o)
{
	struct shapes *s = r->s;
	struct shape_slot *slot = &s->kinds.at[o->kind].nodes->slot[o->slot];
	const uint16_t to = s->block[o->to].kind;

	if (!is_of_type(s, o))
		return;
	if (o->why == ODD_PLACE && to != o->kind && is_larger(s, to, o->kind)) {
		if (same_place(s, to, slot) && !(s->block[o->from].mark & ADOPTED))
			adopt(r, o->from, to);
		return;
	}
	if (to != o->kind && !(s->block[o->to].mark & ADOPTED))
		adopt(r, o->to, o->kind);
	if (s->block[o->to].kind == o->kind && s->link[o->slot][o->from] & SHAPE_FOREIGN) {
		slot->foreign--;
		set_link(r, o->from, o->slot, o->to);
	}
}

/* Takes blocks of other sizes into the kind whose slots lead to them, each at most once. */
static void adopt_all(struct reader *r)
{
	for (size_t i = 0; i < r->s->odd.n && !r->failed; i++) {
		const struct shape_odd o = r->s->odd.at[i];

		settle_odd_slot(r, &o);
	}
}

/* Sums up how the slots of @block agree. */
static void sum_up(struct shapes *s, uint32_t block)
{
	struct shape_nodes *nodes = s->kinds.at[s->block[block].kind].nodes;

	for (int p = 0; p < nodes->n; p++) {
		const uint32_t to = shape_next(s, p, block);

		for (int q = 0; q < nodes->n; q++) {
			const bool reached = s->block[block].mark >> p & 1;

			nodes->slot[p].common[q] += reached && s->block[block].mark >> q & 1;
			nodes->slot[p].onward[q] +=
			    reached && shape_next(s, q, block) != INDEX_NONE;
		}
		if (to == INDEX_NONE)
			continue;
		for (int q = 0; q < nodes->n; q++) {
			nodes->slot[p].inverse[q] += q != p && shape_next(s, q, to) == block;
			nodes->slot[p].both[q] += q != p && shape_next(s, q, block) != INDEX_NONE;
		}
	}
}

static void fetch(const struct shapes *s, uint32_t block)
{
	const struct shape_nodes *nodes = shape_nodes_of(s, block);

	for (int p = 0; nodes && p < nodes->n; p++) {
		const uint32_t to = shape_next(s, p, block);

		for (int q = 0; q < nodes->n && to != INDEX_NONE; q++)
			__builtin_prefetch(&s->link[q][to]);
	}
}

int shape_links(struct shapes *s)
{
	struct reader *r = calloc(1, sizeof(*r));
	uint8_t slots = 0;
	bool failed;

	if (!r)
		return -ENOMEM;
	r->s = s;
	vec_for_each (&s->kinds, k)
		slots = k->nodes && k->nodes->n > slots ? k->nodes->n : slots;
	for (uint8_t i = 0; i < slots; i++) {
		s->link[i] = calloc(s->g->n, sizeof(*s->link[i]));
		if (!s->link[i]) {
			free(r);
			return -ENOMEM;
		}
	}
	read_all(r);
	adopt_all(r);
	failed = r->failed;
	free(r);
	for (uint32_t i = 0; i < s->g->n; i++) {
		if (i + AHEAD < s->g->n)
			fetch(s, i + AHEAD);
		if (shape_nodes_of(s, i))
			sum_up(s, i);
	}
	return failed ? -ENOMEM : 0;
}
