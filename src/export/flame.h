/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flame graph: a single SVG file with its script and style, which needs no other fonts or files. */
#ifndef EXPORT_FLAME_H
#define EXPORT_FLAME_H

#include <stdio.h>
#include "export/tree.h"

struct flame {
	const char *title, *subtitle;
	enum cost cost;
	bool icicle;	   /* the root is at the top */
	bool differential; /* red: more after than before; blue: less; titles show both */
};

/**
 * flame_write() - write the tree as SVG
 * As an image it is 1200 units wide.  In a browser its script (flame.js) fits it to the window, zooms,
 * searches, orders frames, and changes widths between bytes and numbers.  Frames narrower than
 * 1/5000 of the whole are left out.
 *
 * Return: 0 or a negative errno.
 */
int flame_write(const struct flame *f, const struct tree_node *root, FILE *out);

/* Writes the graph of one recording.  @root: a tree by @cost.  Return: 0 or a negative errno. */
int flame_of_model(const struct model *m, const struct tree_node *root, enum cost cost, bool icicle,
		   FILE *out);

#endif
