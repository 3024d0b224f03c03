/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Comma-separated values (RFC 4180), a header line and one line for each stack: the columns are
 * the keys of a group in doc/json.md, the stack folded in the last one. */
#ifndef REPORT_CSV_H
#define REPORT_CSV_H

#include <stdio.h>
#include "report/model.h"

/* Stacks by @cost, dearest first; all that allocated or mapped something.  Return: 0 or a negative
 * errno. */
int csv_write(struct model *m, enum cost cost, FILE *out);

/* A field in quotes. */
void csv_text(const char *text, FILE *out);

#endif
