/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary a person reads. */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdio.h>
#include "report/model.h"
#include "report/view.h"

struct text_options {
	uint32_t top;	 /* sites a list */
	bool leaks_only; /* only what was not freed */
	bool colour;
};

void text_write(struct model *m, const struct text_options *o, FILE *out);

/* Bytes as "1.5 MiB" into @buf of at least 24 bytes.  Return: @buf. */
const char *text_bytes(uint64_t bytes, char *buf);
/* 1234567 as "1,234,567" into @buf of at least 32 bytes.  Return: @buf. */
const char *text_number(uint64_t n, char *buf);
/* What makes a noun one of @n. */
static inline const char *text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* "1.5 MiB in 3 blocks", or "3 allocations" where the cost is a number, into @buf of at least
 * TEXT_COST bytes.  Return: @buf. */
#define TEXT_COST 96
const char *text_cost(enum cost cost, uint64_t value, uint64_t count, char *buf);

/* The head of a summary: which program, when, how it ended. */
void text_head(struct model *m, const struct text_options *o, FILE *out);
/* What memory the process had, and memprof's session in it; nothing when it was not seen twice. */
void text_resident(const struct model *m, FILE *out);
/* A line in bold type, where there are colours. */
void text_bold(const struct text_options *o, FILE *out, const char *text);
/* The innermost @frames of a stack, a line each behind @indent. */
void text_stack(struct model *m, uint32_t id, uint32_t frames, const char *indent, FILE *out);
/* What a list of @n entries does not show of them. */
void text_rest(const struct view *v, uint64_t n, const char *what, FILE *out);

#endif
