/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts that several writers of text share: costs, stacks, bold lines, the end of a list. */
#ifndef EXPORT_TEXT_TEXT_H
#define EXPORT_TEXT_TEXT_H

#include <stdio.h>
#include "export/lists/view.h"
#include "model/group.h"
#include "model/names/frames.h"
#include "model/names/shown.h"
#include "model/places.h"

struct model;

struct text_options {
	uint32_t top;	  /* number of sites in each list */
	uint32_t others;  /* on one screen: in lists of other costs than live bytes */
	bool leaks_only;  /* print only what was not freed */
	enum group_by by; /* what a site is */
	bool verbose;	  /* print all sums and lists, not only a screen */
};

/* Formats "1.5 MiB in 3 blocks", or "3 allocations" if the cost is a number, into @buf of at least
 * TEXT_COST bytes.  Return: @buf. */
#define TEXT_COST 96
const char *text_cost(enum cost cost, uint64_t value, uint64_t count, char *buf);

/* Writes a line, in bold type if colours are on. */
void text_bold(FILE *out, const char *text);
/**
 * text_stack() - write a stack as model/names/shown.h shows it, innermost frame first
 * @frames: most lines, at least 1; --frames and --full-stacks replace it
 * @indent: begins each line; of the first frame of the user's own code, its last two characters
 * become "> "
 */
void text_stack(struct model *m, uint32_t id, uint32_t frames, const char *indent, FILE *out);
/* As text_stack(), for a stack that is in no model, and without options. */
void text_frames(const struct shown_stack *s, uint32_t lines, const char *indent, FILE *out);
/**
 * text_name() - write a function, and where it is
 * @where: "" or what follows, with blanks before it
 * @column: columns of the line that are taken.  If the others of a terminal are too few, the file is
 * without its folders, and the function cut in its middle.
 */
void text_name(const char *function, const char *where, bool site, size_t column, FILE *out);
/* Formats "[library]", for a site without a line "[library+0xoffset]", nothing if the function is
 * named by its library.  Return: @buf. */
#define TEXT_WHERE 1024
const char *text_library(const struct frame *f, bool site, char buf[TEXT_WHERE]);
/* Writes what the filter's suppressions removed, if anything, as "@label 3 stacks: ...". */
void text_suppressed(const struct model *m, const char *label, FILE *out);
/* Writes how many of a list's @n entries are not shown.  @what: the name of one entry. */
void text_rest(const struct view *v, uint64_t n, const char *what, FILE *out);

#endif
