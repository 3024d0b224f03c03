/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flame graph: one SVG file with its own script, no fonts or files from elsewhere. */
#ifndef REPORT_FLAME_H
#define REPORT_FLAME_H

#include <stdio.h>
#include "report/tree.h"

struct flame {
	const char *title, *subtitle;
	enum cost cost;
	bool icicle;	   /* the root on top */
	bool differential; /* red: more after than before, blue: less; titles say both */
};

/**
 * flame_write() - the tree as SVG
 * Click zooms, Ctrl-F or the button searches, a switch changes widths between bytes and counts.
 * Frames narrower than 1/5000 of the whole are left out.
 */
int flame_write(const struct flame *f, const struct node *root, FILE *out);

/* The graph of one recording.  @root: by @cost. */
int flame_of_model(const struct model *m, const struct node *root, enum cost cost, bool icicle,
		   FILE *out);

#endif
