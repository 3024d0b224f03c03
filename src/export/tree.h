/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The call tree: the outermost frame is at the root.  Its nodes are the frames that model/names/shown.h
 * shows.  Sites with different lines are different nodes. */
#ifndef EXPORT_TREE_H
#define EXPORT_TREE_H

#include <stdio.h>
#include "model/group.h"
#include "model/names/frames.h"

struct model;

struct tree_node {
	const char *function, *library, *source; /* owned by the model */
	uint64_t address, offset;
	uint32_t line;
	bool several_lines; /* source, line and address are of the first of several */
	bool site;	    /* the first frame of the user's own code: has only one line */
	uint32_t runtimes;  /* as in shown_frame */
	uint64_t cost, count;
	uint64_t before, after;		/* costs of the two sides, in a differential tree */
	struct tree_node *child, *next; /* children: once built, sorted by cost, highest first */
	uint32_t depth;
};

/**
 * tree_build() - build a tree of all stacks by one cost
 * Return: the root (its cost is the total), or NULL when out of memory; to be freed by tree_free().
 */
struct tree_node *tree_build(struct model *m, enum cost cost);
/* As tree_build(), with callers below callees.  Below the root are the functions of the user's own
 * code that allocated, or with --full-stacks the allocator's. */
struct tree_node *tree_build_bottom_up(struct model *m, enum cost cost);
void tree_free(struct tree_node *root);

/* Writes an ASCII tree; branches below @least of the total are combined into one line. */
void tree_write(const struct tree_node *root, enum cost cost, double least, FILE *out);
/* Return: a root without children, NULL when out of memory. */
struct tree_node *tree_new(void);
/* Return: the child of @parent for @f, created if it is missing; NULL when out of memory. */
struct tree_node *tree_child(struct tree_node *parent, const struct frame *f);
/* Sorts children by cost, highest first, then by name: the same recording gives the same tree. */
void tree_sort(struct tree_node *n);

/* Writes a name for folded stacks, in which a semicolon separates frames and a newline lines. */
void folded_name(const char *s, FILE *out);
/* Writes one stack as "outer;inner", with --lines as "outer file:line;inner file:line".  @every:
 * every frame, with its full name.  Return: 0 or -ENOMEM. */
int folded_stack(struct model *m, uint32_t id, bool every, FILE *out);
/* Writes folded stacks, lines of "outer;inner cost", as flamegraph.pl reads them.  Return: 0 or a
 * negative errno. */
int folded_write(struct model *m, enum cost cost, FILE *out);

#endif
