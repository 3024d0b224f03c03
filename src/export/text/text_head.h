/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the summaries of allocations and of page faults have in common: which program it was, when,
 * and its resident memory. */
#ifndef EXPORT_TEXT_TEXT_HEAD_H
#define EXPORT_TEXT_TEXT_HEAD_H

#include <stdio.h>
#include "export/text/text.h"

struct model;

/* Writes the head of a summary: which program, when, how it ended. */
void text_head(struct model *m, FILE *out);
/* Writes that the recording does not begin with the program, if it is a later piece of one. */
void text_piece(const struct model *m, FILE *out);
/* Writes the process's resident memory, and that of memprof's session in it.  Writes nothing with
 * fewer than two samples. */
void text_resident(const struct model *m, FILE *out);

#endif
