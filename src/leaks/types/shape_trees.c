/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "leaks/types/shape.h"

struct climber {
	struct shapes *s;
	const struct shape_nodes *nodes;
	uint8_t tree, bits; /* first slot; all its slots */
	VEC(uint32_t) waiting;
};

/* The slots of the tree whose first slot is @tree. */
static uint8_t slots_of(const struct shape_nodes *n, uint8_t tree)
{
	uint8_t bits = 0;

	for (uint8_t p = 0; p < n->n; p++) {
		if (n->slot[p].role == ROLE_CHILD && n->slot[p].partner == tree)
			bits |= (uint8_t)(1u << p);
	}
	return bits;
}

static bool is_root(const struct climber *c, uint32_t block)
{
	bool children = false;

	for (uint8_t p = 0; p < c->nodes->n; p++)
		children |= c->bits >> p & 1 && shape_next(c->s, p, block) != INDEX_NONE;
	return children && !(c->s->block[block].mark & c->bits);
}

static int climb(struct climber *c, uint32_t root)
{
	const uint8_t bit = (uint8_t)(1u << c->tree);
	struct shape_chain tree = {
	    .head = root, .tail = root, .kind = c->s->block[root].kind, .slot = c->tree};
	int ret = vec_push(&c->waiting, root);

	c->s->block[root].done |= bit;
	while (c->waiting.n && !ret) {
		const uint32_t at = c->waiting.at[--c->waiting.n];

		tree.length++;
		tree.bytes += c->s->g->block[at].size;
		for (uint8_t p = 0; p < c->nodes->n && !ret; p++) {
			const uint32_t to = c->bits >> p & 1 ? shape_next(c->s, p, at) : INDEX_NONE;

			if (to == INDEX_NONE || c->s->block[to].kind != tree.kind ||
			    c->s->block[to].done & bit)
				continue;
			c->s->block[to].done |= bit;
			ret = vec_push(&c->waiting, to);
		}
	}
	return ret ? ret : shape_chain(c->s, &tree);
}

/* Return: the first slot of the first tree of a kind, from slot @p on; SHAPE_SLOTS: none. */
static uint8_t tree_from(const struct shape_nodes *n, uint8_t p)
{
	while (n && p < n->n && (n->slot[p].role != ROLE_CHILD || n->slot[p].partner != p))
		p++;
	return n && p < n->n ? p : SHAPE_SLOTS;
}

static int name_trees(struct shapes *s, uint16_t kind, uint8_t tree)
{
	struct shape_nodes *n = s->kinds.at[kind].nodes;
	struct shape_slot *slot = &n->slot[tree];
	const bool binary = __builtin_popcount(slots_of(n, tree)) == 2;
	uint64_t links = 0;

	for (uint8_t p = 0; p < n->n; p++)
		links += slots_of(n, tree) >> p & 1 ? n->slot[p].links : 0;
	/* What roots do not lead to has cycles. */
	if (!shape_are_long(slot) || slot->chains.blocks * 10 < (links + slot->chains.count) * 9)
		return 0;
	slot->name = shape_node_id(s, binary ? "node of a binary tree" : "node of a tree", kind);
	slot->container = shape_id(s, binary ? "binary tree of %s" : "tree of %s", kind);
	return slot->name && slot->container ? 0 : -ENOMEM;
}

static int add_trees(struct shapes *s, size_t first)
{
	int ret = 0;

	for (size_t i = first; i < s->chains.n && !ret; i++) {
		struct shape_chain *c = &s->chains.at[i];
		const struct shape_slot *slot = &s->kinds.at[c->kind].nodes->slot[c->slot];
		const struct container is = {.name = slot->container,
					     .first = s->g->block[c->head].addr,
					     .elements = c->length,
					     .blocks = c->length,
					     .bytes = c->bytes};

		if (slot->container && !shape_named(s, c->head))
			ret = shape_add(s, &is, c->head, c->head);
	}
	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		const struct shape_nodes *n = shape_nodes_of(s, i);

		for (uint8_t p = tree_from(n, 0); p < SHAPE_SLOTS;
		     p = tree_from(n, (uint8_t)(p + 1))) {
			if (n->slot[p].name && s->block[i].done >> p & 1)
				block_names_set(s->n, i, n->slot[p].name);
		}
	}
	return ret;
}

int shape_trees(struct shapes *s)
{
	const size_t first = s->chains.n;
	struct climber c = {.s = s};
	int ret = 0;

	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		c.nodes = shape_nodes_of(s, i);
		for (c.tree = tree_from(c.nodes, 0); c.tree < SHAPE_SLOTS && !ret;
		     c.tree = tree_from(c.nodes, (uint8_t)(c.tree + 1))) {
			c.bits = slots_of(c.nodes, c.tree);
			if (is_root(&c, i))
				ret = climb(&c, i);
		}
	}
	for (size_t k = 1; k < s->kinds.n && !ret; k++) {
		const struct shape_nodes *n = s->kinds.at[k].nodes;

		for (uint8_t p = tree_from(n, 0); p < SHAPE_SLOTS && !ret;
		     p = tree_from(n, (uint8_t)(p + 1)))
			ret = name_trees(s, (uint16_t)k, p);
	}
	vec_free(&c.waiting);
	return ret ? ret : add_trees(s, first);
}
