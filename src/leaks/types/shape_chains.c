/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists.  A chain is what one slot strings together.  Whether the chains of a slot are lists is
 * decided for all of them: by chance, blocks form pairs, but no long chains.
 */
#include <errno.h>
#include "leaks/types/shape.h"

struct walker {
	struct shapes *s;
	uint16_t kind;
	uint8_t slot, bit;
	const struct shape_slot *is;
};

static bool is_done(const struct walker *w, uint32_t block)
{
	return w->s->block[block].done & w->bit;
}

/* Is the block in a chain of another slot, which uses this slot for the way back? */
static bool is_other(const struct walker *w, uint32_t block)
{
	return w->is->rest && w->s->block[block].done >> w->is->partner & 1;
}

/* Return: the next block of the chain; INDEX_NONE: there is none, or that does not lead back. */
static uint32_t next_of(const struct walker *w, uint32_t block)
{
	const uint32_t to = shape_next(w->s, w->slot, block);

	if (to == INDEX_NONE)
		return INDEX_NONE;
	__builtin_prefetch(&w->s->link[w->slot][to]);
	__builtin_prefetch(&w->s->g->block[to]);
	if (w->is->role == ROLE_NEXT)
		__builtin_prefetch(&w->s->link[w->is->partner][to]);
	if (w->s->block[to].kind != w->kind || is_done(w, to) || is_other(w, to))
		return INDEX_NONE;
	if (w->is->role == ROLE_NEXT && shape_next(w->s, w->is->partner, to) != block)
		return INDEX_NONE;
	return to;
}

/* Is there a block before this one? */
static bool has_previous(const struct walker *w, uint32_t block)
{
	uint32_t before;

	if (w->is->role == ROLE_SINGLE)
		return w->s->block[block].mark & w->bit;
	before = shape_next(w->s, w->is->partner, block);
	return before != INDEX_NONE && !is_done(w, before) &&
	       shape_next(w->s, w->slot, before) == block;
}

/* Walks the chain that begins at @head, and gives its blocks the chain's number. */
static int walk_chain(struct walker *w, uint32_t head)
{
	struct shapes *s = w->s;
	struct shape_chain c = {.head = head, .kind = w->kind, .slot = w->slot};
	uint32_t at = head, next;

	do {
		const uint32_t link = s->link[w->slot][at];

		next = next_of(w, at);
		if (next == INDEX_NONE)
			c.ring = shape_next(s, w->slot, at) == head && at != head;
		c.beyond = link & SHAPE_FOREIGN ? 1 + (link & ~SHAPE_FOREIGN) : 0;
		c.tail = at;
		c.length++;
		c.bytes += s->g->block[at].size;
		s->block[at].done |= w->bit;
		s->link[w->slot][at] = 1 + (uint32_t)s->chains.n;
		at = next;
		/* A ring is closed by its first block, which is done by then. */
	} while (at != INDEX_NONE && !is_done(w, at));
	return shape_chain(s, &c);
}

/* Which blocks begin a chain. */
enum beginning {
	BY_MARK,  /* those that no block leads to: that costs no look at another block */
	BY_BLOCK, /* those that no block leads to that these lead back to */
	ANYWHERE, /* all others: they are in rings */
	BEGINNINGS,
};

static bool begins(struct walker *w, uint32_t block, uint8_t slot, enum beginning how)
{
	w->kind = w->s->block[block].kind;
	w->slot = slot;
	w->bit = (uint8_t)(1u << slot);
	w->is = shape_slot_of(w->s, w->kind, slot);
	if (is_done(w, block) || is_other(w, block) || !w->s->link[slot][block] ||
	    (how == BY_MARK && w->s->block[block].mark & w->bit))
		return false;
	return next_of(w, block) != INDEX_NONE && (how != BY_BLOCK || !has_previous(w, block));
}

static int walk_all(struct shapes *s, enum shape_role role, enum beginning how)
{
	struct walker w = {.s = s};
	int ret = 0;

	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		const struct shape_nodes *nodes = shape_nodes_of(s, i);

		for (uint8_t p = 0; nodes && p < nodes->n && !ret; p++) {
			if (nodes->slot[p].role == role && begins(&w, i, p, how))
				ret = walk_chain(&w, i);
		}
	}
	return ret;
}

int shape_chains(struct shapes *s)
{
	int ret = 0;

	/* What a chain with ways back has is no part of another one. */
	for (int how = 0; how < BEGINNINGS && !ret; how++)
		ret = walk_all(s, ROLE_NEXT, (enum beginning)how);
	for (int how = 0; how < BEGINNINGS && !ret; how++)
		ret = walk_all(s, ROLE_SINGLE, (enum beginning)how);
	return ret;
}

/* ------------------------------------------------------------- lists -- */

/* Does the chain end in the middle of other blocks?  A block at both ends of a list with links back
 * is its head. */
static bool is_torn(const struct shapes *s, const struct shape_chain *c,
		    const struct shape_slot *slot)
{
	uint32_t before;

	if (!c->beyond)
		return false;
	if (slot->role == ROLE_SINGLE)
		return true;
	before = s->link[slot->partner][c->head];
	return before != (SHAPE_FOREIGN | (c->beyond - 1));
}

/* Chains that hash tables have taken say nothing about the others. */
static void forget_taken(struct shapes *s)
{
	vec_for_each (&s->chains, c) {
		struct shape_slot *slot = &s->kinds.at[c->kind].nodes->slot[c->slot];

		if (c->taken) {
			shape_forget(slot, c);
		} else {
			slot->chains.torn += is_torn(s, c, slot);
		}
	}
}

static int name_lists(struct shapes *s, enum shape_role role)
{
	static const char *const node[] = {"node of a doubly linked list",
					   "node of a singly linked list"},
				 *const list[] = {"doubly linked list of %s",
						  "singly linked list of %s"};

	for (size_t k = 1; k < s->kinds.n; k++) {
		struct shape_nodes *nodes = s->kinds.at[k].nodes;

		for (uint8_t p = 0; nodes && p < nodes->n; p++) {
			struct shape_slot *slot = &nodes->slot[p];

			if (slot->role != role || !shape_are_long(slot))
				continue;
			slot->name = shape_node_id(s, node[role == ROLE_SINGLE], (uint16_t)k);
			slot->container = shape_id(s, list[role == ROLE_SINGLE], (uint16_t)k);
			if (!slot->name || !slot->container)
				return -ENOMEM;
		}
	}
	return 0;
}

/* A block in a list with links back, or in a tree, is not in another one, too; but with one in a hash
 * table, both are true. */
static bool is_free(const struct shapes *s, const struct shape_chain *c, enum shape_role role)
{
	return role == ROLE_NEXT || (!shape_named(s, c->head) && !shape_named(s, c->tail));
}

int shape_lists(struct shapes *s, enum shape_role role)
{
	int ret;

	if (role == ROLE_NEXT)
		forget_taken(s);
	ret = name_lists(s, role);
	vec_for_each (&s->chains, c) {
		const struct shape_slot *slot = &s->kinds.at[c->kind].nodes->slot[c->slot];
		const struct container is = {.name = slot->container,
					     .first = s->g->block[c->head].addr,
					     .elements = c->length,
					     .blocks = c->length,
					     .bytes = c->bytes};

		if (ret || slot->role != role || c->taken || !slot->container)
			continue;
		c->taken = !is_free(s, c, role);
		if (!c->taken)
			ret = shape_add(s, &is, c->head, c->tail);
	}
	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		const struct shape_nodes *nodes = shape_nodes_of(s, i);

		for (uint8_t p = 0; nodes && p < nodes->n; p++) {
			const struct shape_slot *slot = &nodes->slot[p];

			if (slot->role == role && slot->container && s->block[i].done >> p & 1 &&
			    !s->chains.at[s->link[p][i] - 1].taken)
				block_names_set(s->n, i, slot->name);
		}
	}
	return ret;
}
