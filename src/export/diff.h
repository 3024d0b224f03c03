/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compares two recordings, or two moments of one, by stack.  Stacks are equal if their frames are:
 * function and library, regardless of addresses; also the line, if both sides have the same build
 * (build id).  A frame without a symbol is identified by its offset in the library, or only by the
 * library if the builds differ.  Versions at the end of a library's name are ignored, and so is the
 * name of the program itself.
 */
#ifndef EXPORT_DIFF_H
#define EXPORT_DIFF_H

#include <stdio.h>
#include "export/tree.h"
#include "lib/intern.h"
#include "lib/vec.h"
#include "model/group.h"
#include "model/names/frames.h"

struct model;

struct diff_side {
	struct model *m; /* must outlive the diff; both sides can have the same one */
	bool has_moment;
	uint64_t at_ns;	      /* the moment; if !has_moment: the end */
	uint64_t cost, count; /* sums, filled in by diff_make() */
	double variance;      /* of cost, if the recording is a sample */
};

struct diff_node {
	uint32_t parent; /* index + 1; 0: this is the outermost frame */
	uint32_t depth;
	struct frame frame; /* from the side that had it first; line 0 if lines are ignored */
};

/* A stack and its sums on both sides. */
struct diff_row {
	uint32_t node; /* of the innermost frame: index in nodes */
	uint64_t before, after, before_count, after_count;
};

struct diff {
	struct diff_side side[2]; /* before, after */
	enum cost cost;
	struct intern *frames, *chains;
	VEC(struct diff_node) nodes;
	VEC(struct diff_row) rows; /* largest change first */
};

/**
 * diff_make() - compare two sides
 * @before, @after: copied
 *
 * Return: 0 with @d filled (to be freed by diff_free()), or a negative errno with @err.
 */
int diff_make(const struct diff_side *before, const struct diff_side *after, enum cost cost,
	      struct diff *d, struct mp_err *err);
void diff_free(struct diff *d);

/* Writes the @top stacks that grew and shrank most as text. */
void diff_text(const struct diff *d, uint32_t top, FILE *out);
/* Writes JSON as in doc/diff.schema.json.  Return: 0 or a negative errno. */
int diff_json(const struct diff *d, FILE *out);
/* Writes lines of "outer;inner before after", as difffolded.pl does.  Return: 0 or a negative
 * errno. */
int diff_folded(const struct diff *d, FILE *out);
/* Writes a differential flame graph.  Frames are as wide as the larger side.  Return: 0 or a
 * negative errno. */
int diff_flame(const struct diff *d, FILE *out);

#endif
