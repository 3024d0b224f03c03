/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The dominator tree of the live blocks.  A node dominates a block if every path from the roots to
 * the block leads through it: without the node the block could not be reached.  The bytes of all
 * blocks that a node dominates, itself included, are its retained bytes.
 *
 * Nodes are the blocks, the holders (variables, frames and the like, which have the roots), and one
 * virtual node above them.  Semi-NCA (semi_nca.h) finds the tree.
 *
 * A weak holder (a stack, registers) keeps only what no other holder reaches: its values are
 * temporary, and the variable that reaches the block says more.
 */
#ifndef LEAKS_RETAINED_DOMINATORS_H
#define LEAKS_RETAINED_DOMINATORS_H

#include <stdbool.h>
#include "leaks/graph.h"

/* The holders, and what they point to. */
struct dom_holders {
	uint32_t n;
	const uint32_t *parent; /* a lower number, or INDEX_NONE: none */
	const bool *weak;	/* of holders without a parent; it applies to their children, too */
	const uint32_t *first;	/* edges of holder i: to[first[i]] to to[first[i + 1] - 1] */
	const uint32_t *to;	/* blocks */
	const uint64_t *exact;	/* bitmap, by edge */
};

#define DOM_EXACT (1u << 31) /* in .from: REVERSED_FLAG */

/*
 * The tree.  Every reached node has a place: a node's place is followed by those of the nodes below
 * it, so that the first child of place p is p + 1, and the next sibling of place c is c + count[c].
 * Place 0 is the virtual node.
 */
struct dominators {
	uint32_t blocks, holders; /* numbers of nodes: blocks, then holders, then the virtual one */
	uint32_t n;		  /* places */
	uint32_t *node;		  /* by place */
	uint32_t *place;	  /* by node; INDEX_NONE: not reached */
	uint32_t *count;	  /* by place: nodes in its subtree, itself included */
	uint64_t *bytes;	  /* by place: retained */
	/* By place: the part of the retained bytes that hangs on exact pointers all the way from
	 * this node.  A block hangs on an exact pointer if a node that it does not dominate has the
	 * address of its very start. */
	uint64_t *exact;
	/* Until dominators_settle(): the places of the nodes in the order of the search, and the
	 * predecessors of the i-th, from[from_first[i]] to from[from_first[i + 1] - 1], as indexes
	 * of reached[]; DOM_EXACT is set in those that have its very start. */
	uint32_t *reached, *from_first, *from;
};

/**
 * dominators_find() - find the tree
 * @g: from graph_edges(), with .detailed; its edges are freed as soon as they are not needed
 * At its end it has 28 bytes a block and 4 an edge; in between it needs up to 12 bytes a block more.
 * It uses two processors if it may; the result is the same with one.
 * Return: 0; -ENOMEM; -E2BIG: twice the nodes, and the edges, are 2 G together.
 */
int dominators_find(struct dominators *d, struct graph *g, const struct dom_holders *h);
/* Frees the lists of predecessors. */
void dominators_settle(struct dominators *d);
void dominators_free(struct dominators *d);

/* Return: the place of @place's parent; 0 for place 0. */
uint32_t dominators_parent(const struct dominators *d, uint32_t place);
/**
 * dominators_holders() - find the holders from which paths lead to a node
 * @place: of the node
 * @holders: receives the first @max of them
 * Searches backwards, so before dominators_settle().  Weak holders are not found if others are.
 * Return: their number, or -ENOMEM.
 */
int64_t dominators_holders(const struct dominators *d, uint32_t place, uint32_t *holders,
			   uint32_t max);

static inline uint32_t dominators_root(const struct dominators *d)
{
	return d->blocks + d->holders;
}

#endif
