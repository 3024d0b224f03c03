/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Texts cut to columns of a terminal.  How many columns a character takes depends on LC_CTYPE; one
 * that the locale does not have takes one column and is shown as "?".  Texts must be printable()
 * already.
 */
#ifndef TOP_FIT_H
#define TOP_FIT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define FIT_SIZE 4096 /* bytes of a text that was cut */

/* Return: columns of the whole text. */
uint32_t fit_columns(const char *text);
/**
 * fit_wide() - the beginning of a text as wide characters
 * @columns: most columns that it can have
 * @n: elements of @out, at least 1; @out is ended by a 0
 *
 * Return: the columns of @out.
 */
uint32_t fit_wide(const char *text, uint32_t columns, wchar_t *out, size_t n);
/* Return: the last part of @text that has at most @columns. */
const char *fit_tail(const char *text, uint32_t columns);
/* Cuts a name in its middle: "begin..end".  Return: @name if it has at most @columns, else @buf. */
const char *fit_middle(const char *name, uint32_t columns, char buf[FIT_SIZE]);

/* A part of a line. */
struct fit_part {
	const char *text;  /* "": nothing */
	const char *brief; /* shown instead when there is no room; NULL: there is none */
	uint32_t rank;	   /* the highest goes first; 0: it always stays */
};

/**
 * fit_parts() - join parts to a line, with two blanks between them
 * @p: changed: while the line has more than @columns, the part of the highest rank becomes brief,
 * then empty
 *
 * Return: @buf.  It can be longer than @columns if parts of rank 0 are.
 */
const char *fit_parts(struct fit_part *p, uint32_t n, uint32_t columns, char buf[FIT_SIZE]);

#endif
