/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts that several writers of text share: costs, stacks, bold lines, the end of a list. */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include <stdio.h>
#include "export/view.h"
#include "model/group.h"

struct model;

struct text_options {
	uint32_t top;	 /* number of sites in each list */
	bool leaks_only; /* print only what was not freed */
	bool colour;
};

/* Formats "1.5 MiB in 3 blocks", or "3 allocations" if the cost is a number, into @buf of at least
 * TEXT_COST bytes.  Return: @buf. */
#define TEXT_COST 96
const char *text_cost(enum cost cost, uint64_t value, uint64_t count, char *buf);

/* Writes a line, in bold type if colours are on. */
void text_bold(const struct text_options *o, FILE *out, const char *text);
/* Writes the innermost @frames frames of a stack, each on a line that begins with @indent. */
void text_stack(struct model *m, uint32_t id, uint32_t frames, const char *indent, FILE *out);
/* Writes how many of a list's @n entries are not shown.  @what: the name of one entry. */
void text_rest(const struct view *v, uint64_t n, const char *what, FILE *out);

#endif
