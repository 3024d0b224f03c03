/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Comma-separated values (RFC 4180): a header line and a line for each stack.  The columns are the
 * keys of a group in doc/json.md; the last ones are the site's function, source and line, and the
 * folded stack. */
#ifndef EXPORT_CSV_H
#define EXPORT_CSV_H

#include <stdio.h>
#include "model/group.h"

struct model;

/* Writes all stacks that allocated or mapped something, sorted by @cost, highest first.  Return: 0
 * or a negative errno. */
int csv_write(struct model *m, enum cost cost, FILE *out);

/* Writes a field in quotes. */
void csv_text(const char *text, FILE *out);

#endif
