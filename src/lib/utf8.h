/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes text from other programs, which is not necessarily valid UTF-8 (RFC 3629). */
#ifndef LIB_UTF8_H
#define LIB_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#define UTF8_INVALID UINT32_MAX

/**
 * utf8_next() - decode one character of a string
 * @text: must not be at the end of its string; is advanced past the character, or past one byte if
 * no valid sequence begins there
 *
 * Return: the code point, or UTF8_INVALID.
 */
uint32_t utf8_next(const char **text);

/* Return: whether the whole text is valid. */
bool utf8_is_valid(const char *s);
/* Replaces each byte of @s that is not part of a valid sequence by '?'. */
void utf8_clean(char *s);

#endif
