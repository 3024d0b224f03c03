/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Escapes names from other programs for text output on a terminal.
 *
 * A program chooses the names of its threads, files, symbols and arguments.  Control characters in
 * them could move the cursor, set the title of a window, forge lines of a report, or make a
 * terminal answer.  Text output prints every such name through printable().  JSON, SVG and pprof
 * have rules of their own (json_text(), svg_text(), utf8_clean()).
 */
#ifndef LIB_PRINTABLE_H
#define LIB_PRINTABLE_H

#include <stddef.h>

/* Longer names are truncated, but only if they contain something to escape. */
#define PRINTABLE_SIZE 2048

/**
 * printable_text() - escape characters that a terminal would not show as text
 * @s: NUL-terminated
 * @buf: receives the escaped text, truncated to @size - 1 bytes, if anything must be escaped
 *
 * Control characters (C0, DEL, C1), line and paragraph separators, characters that change the
 * direction of text (Unicode bidirectional formatting), and bytes that are not UTF-8 become \xNN
 * for each of their bytes.
 *
 * Return: @s itself if nothing must be escaped, otherwise @buf.
 */
const char *printable_text(const char *s, char *buf, size_t size);

/* As printable_text(), with a buffer that exists until the end of the enclosing block. */
#define printable(s) printable_text((s), (char[PRINTABLE_SIZE]){0}, PRINTABLE_SIZE)

#endif
