/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* UTF-8 (RFC 3629) in text of other programs, which need not be UTF-8. */
#ifndef LIB_UTF8_H
#define LIB_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#define UTF8_INVALID UINT32_MAX

/**
 * utf8_next() - decode one character of a string
 * @text: not at the end of its string; is moved behind the character, or behind one byte if that
 *	begins no valid sequence
 *
 * Return: the code point, or UTF8_INVALID.
 */
uint32_t utf8_next(const char **text);

/* Each byte of @s that is not part of a valid sequence becomes '?'. */
void utf8_clean(char *s);

#endif
