/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Semi-NCA: from a depth-first search and the predecessors of each node to immediate dominators
 * (L. Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005, 2.3). */
#ifndef LEAKS_RETAINED_SEMI_NCA_H
#define LEAKS_RETAINED_SEMI_NCA_H

#include <stdint.h>

#define REVERSED_FLAG (1u << 31) /* is ignored in .from */

/* Nodes are numbered in the order in which a depth-first search reaches them. */
struct reversed {
	uint32_t n;
	const uint32_t *first; /* predecessors of i: from[first[i]] to from[first[i + 1] - 1] */
	const uint32_t *from;
};

#define SEMI_NCA_BYTES 12u /* of memory, by node */

/**
 * semi_nca() - find immediate dominators
 * @idom: by node: its parent in the tree of the search; becomes its immediate dominator
 * @memory: SEMI_NCA_BYTES a node, aligned for uint64_t; need not be zero
 * Return: 0 or -ENOMEM.
 */
int semi_nca(const struct reversed *g, uint32_t *idom, void *memory);

#endif
