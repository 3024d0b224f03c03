/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Colours of text, and lines that fit the terminal.  Text for a file or a pipe has neither. */
#ifndef EXPORT_TEXT_TERMINAL_H
#define EXPORT_TEXT_TERMINAL_H

#include <stddef.h>
#include <stdio.h>

enum term_when {
	TERM_AUTO, /* on a terminal, unless NO_COLOR is set (no-color.org) or TERM is "dumb" */
	TERM_ALWAYS,
	TERM_NEVER
};

enum term_style {
	TERM_BOLD, /* titles, and names to look at */
	TERM_FAINT,
	TERM_AMOUNT,
	TERM_GOOD,
	TERM_WARNING,
	TERM_BAD
};

/* Longer names are cut also where there is no terminal. */
#define TERM_NAME 2048

/* Decides whether standard output has colours; before this, it has none. */
void term_colours(enum term_when when);
/* Return: what begins the style in @out, "" without colours. */
const char *term_on(FILE *out, enum term_style style);
/* Return: what ends every style in @out, "" without colours. */
const char *term_off(FILE *out);
/* Return: columns of the terminal that @out is; 0: it is none. */
size_t term_width(FILE *out);
/**
 * term_fit() - cut a name in its middle
 * @room: bytes that it can have
 * @buf: for the name that was cut
 *
 * Return: @name, or @buf with its beginning, "..", and its end.
 */
const char *term_fit(const char *name, size_t room, char buf[TERM_NAME]);
/* Writes the rest of a line, from @column on, to @out.  On a terminal that is too narrow it is broken
 * between words; what follows begins after @indent blanks. */
void term_line(FILE *out, size_t column, size_t indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
