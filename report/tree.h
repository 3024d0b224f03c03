/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The call tree: outermost frame at the root, inlined frames as frames of their own. */
#ifndef REPORT_TREE_H
#define REPORT_TREE_H

#include <stdio.h>
#include "report/model.h"

struct node {
	const char *function, *library; /* the model's */
	uint64_t cost, count;
	uint64_t before, after;	   /* costs of the two sides, in a tree of differences */
	struct node *child, *next; /* children: dearest first once built */
	uint32_t depth;
};

/**
 * tree_build() - tree of all stacks by one cost
 * Return: the root (its cost is the total), or NULL when out of memory; freed by tree_free().
 */
struct node *tree_build(struct model *m, enum cost cost);
/* The same with the allocator's functions below the root and their callers below them. */
struct node *tree_build_bottom_up(struct model *m, enum cost cost);
void tree_free(struct node *root);

/* ASCII tree; branches below @least of the total are folded into one line. */
void tree_write(const struct node *root, enum cost cost, double least, FILE *out);
/* A root without children, NULL when out of memory. */
struct node *tree_new(void);
/* The child of @parent that is @f, made if there is none; NULL when out of memory. */
struct node *tree_child(struct node *parent, const struct frame *f);
/* Children dearest first, names break ties: the same recording gives the same tree. */
void tree_sort(struct node *n);

/* A name in folded stacks: a semicolon separates frames and a newline lines. */
void folded_name(const char *s, FILE *out);
/* One stack as "outer;inner". */
void folded_stack(struct model *m, uint32_t id, FILE *out);
/* Folded stacks: "outer;inner cost" a line, as flamegraph.pl reads them. */
int folded_write(struct model *m, enum cost cost, FILE *out);

#endif
