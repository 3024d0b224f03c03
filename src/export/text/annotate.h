/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A source file with what its lines allocate, as text. */
#ifndef EXPORT_TEXT_ANNOTATE_H
#define EXPORT_TEXT_ANNOTATE_H

#include <stdio.h>
#include "export/source_file.h"
#include "lib/err.h"
#include "model/group.h"

struct model;

/**
 * annotate_write() - write the lines of each file that is meant by @wanted
 * @wanted: a path, or its last parts
 * @cost: one in bytes: of the column "through", which has all stacks with a frame of the line
 *
 * The other columns have the stacks whose site (model/names/shown.h) is the line.  The text says if a
 * file cannot be found, and if it is newer than the program.
 * Return: 0, or a negative errno with @err filled: -ENOENT: no stack has a line of such a file.
 */
int annotate_write(struct model *m, const char *wanted, const struct source_prefixes *p,
		   enum cost cost, FILE *out, struct mp_err *err);

#endif
