/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Trees whose nodes have arrays of children.  Here all edges between blocks of the kind count: each
 * block must be reached from one other block of its kind at most, and most that have children must
 * have several.
 */
#include <errno.h>
#include "leaks/types/shape.h"

#define BIT 1u /* in .mark and .done: the slots of such a kind are not used */

struct climber {
	struct shapes *s;
	uint32_t *parents; /* by kind: blocks with children */
	VEC(uint32_t) waiting;
};

static struct shape_slot *sums_of(const struct shapes *s, uint32_t block)
{
	struct shape_nodes *nodes = s->kinds.at[s->block[block].kind].nodes;

	return nodes && nodes->wide ? &nodes->slot[0] : NULL;
}

static void note_children(struct climber *c, uint32_t block)
{
	struct shapes *s = c->s;
	struct shape_slot *sums = sums_of(s, block);
	bool any = false;

	for (uint32_t e = s->g->first[block]; sums && e < s->g->first[block + 1]; e++) {
		struct shape_block *to = &s->block[s->g->to.at[e]];

		if (to->kind != s->block[block].kind)
			continue;
		any = true;
		sums->links++;
		sums->repeated += to->mark & BIT;
		to->mark |= BIT;
	}
	c->parents[s->block[block].kind] += any;
}

static bool are_trees(const struct climber *c, uint32_t block)
{
	const struct shape_slot *sums = sums_of(c->s, block);

	return sums && sums->repeated * 100ull <= sums->links &&
	       sums->links * 2ull >= c->parents[c->s->block[block].kind] * 3ull;
}

static int climb(struct climber *c, uint32_t root)
{
	struct shapes *s = c->s;
	struct shape_chain tree = {.head = root, .tail = root, .kind = s->block[root].kind};
	int ret = vec_push(&c->waiting, root);

	s->block[root].done |= BIT;
	while (c->waiting.n && !ret) {
		const uint32_t at = c->waiting.at[--c->waiting.n];

		tree.length++;
		tree.bytes += s->g->block[at].size;
		for (uint32_t e = s->g->first[at]; e < s->g->first[at + 1] && !ret; e++) {
			struct shape_block *to = &s->block[s->g->to.at[e]];

			if (to->kind != tree.kind || to->done & BIT)
				continue;
			to->done |= BIT;
			ret = vec_push(&c->waiting, s->g->to.at[e]);
		}
	}
	/* A block without children by itself is no tree. */
	return ret || tree.length < 2 ? ret : shape_chain(s, &tree);
}

static int name_trees(struct shapes *s, uint16_t kind)
{
	struct shape_slot *sums = &s->kinds.at[kind].nodes->slot[0];

	/* What roots do not lead to has cycles. */
	if (!shape_are_long(sums) ||
	    sums->chains.blocks * 10 < ((uint64_t)sums->links + sums->chains.count) * 9)
		return 0;
	sums->name = shape_node_id(s, "node of a tree", kind);
	sums->container = shape_id(s, "tree of %s", kind);
	return sums->name && sums->container ? 0 : -ENOMEM;
}

static int add_trees(struct shapes *s, size_t first)
{
	int ret = 0;

	for (size_t i = first; i < s->chains.n && !ret; i++) {
		const struct shape_chain *c = &s->chains.at[i];
		const struct container is = {.name = shape_slot_of(s, c->kind, 0)->container,
					     .first = s->g->block[c->head].addr,
					     .elements = c->length,
					     .blocks = c->length,
					     .bytes = c->bytes};

		if (is.name)
			ret = shape_add(s, &is, c->head, c->head);
	}
	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		const struct shape_slot *sums = sums_of(s, i);

		if (sums && sums->name && s->block[i].done & BIT)
			block_names_set(s->n, i, sums->name);
	}
	return ret;
}

int shape_wide_trees(struct shapes *s)
{
	const size_t first = s->chains.n;
	struct climber c = {.s = s, .parents = calloc(s->kinds.n, sizeof(*c.parents))};
	int ret = c.parents ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->g->n && !ret; i++)
		note_children(&c, i);
	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		if (are_trees(&c, i) && !(s->block[i].mark & BIT))
			ret = climb(&c, i);
	}
	for (size_t k = 1; k < s->kinds.n && !ret; k++) {
		if (s->kinds.at[k].nodes && s->kinds.at[k].nodes->wide)
			ret = name_trees(s, (uint16_t)k);
	}
	vec_free(&c.waiting);
	free(c.parents);
	return ret ? ret : add_trees(s, first);
}
