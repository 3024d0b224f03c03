/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What grew between two recordings, or two moments of one, by stack.  Stacks are the same when
 * their frames are: function and library, whatever the addresses; the line too where both sides
 * have the same build (build id).  A frame without a symbol is its offset in the library, or only
 * the library where the builds differ.  Versions at the end of a library's name do not count, nor
 * does the name of the program itself.
 */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include <stdio.h>
#include "lib/intern.h"
#include "report/model.h"
#include "report/tree.h"

struct diff_side {
	struct model *m; /* outlives the diff; both sides may have the same one */
	bool has_moment;
	uint64_t at_ns;	      /* the moment; without one: the end */
	uint64_t cost, count; /* sums, filled in */
	double variance;      /* of cost, when the recording is a sample */
};

struct diff_node {
	uint32_t parent; /* index + 1; 0: outermost */
	uint32_t depth;
	struct frame frame; /* of the side that had it first; line 0 where lines do not count */
};

/* One stack. */
struct diff_row {
	uint32_t node; /* innermost frame: index in nodes */
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
 * diff_make() - compare
 * @before, @after: copied
 *
 * Return: 0 with @d filled (freed by diff_free()), or a negative errno with @err.
 */
int diff_make(const struct diff_side *before, const struct diff_side *after, enum cost cost,
	      struct diff *d, struct mp_err *err);
void diff_free(struct diff *d);

/* The @top stacks that grew most and shrank most, to read. */
void diff_text(const struct diff *d, uint32_t top, FILE *out);
/* doc/diff.schema.json.  Return: 0 or a negative errno. */
int diff_json(const struct diff *d, FILE *out);
/* "outer;inner before after" a line, as difffolded.pl writes them. */
int diff_folded(const struct diff *d, FILE *out);
/* Differential flame graph: as wide as the larger of the two sides. */
int diff_flame(const struct diff *d, FILE *out);

#endif
