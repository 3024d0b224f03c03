/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Recording ids and build ids as hexadecimal text. */
#ifndef LIB_HEX_H
#define LIB_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Writes @n bytes as 2 * @n lower-case digits and a NUL to @text.  Return: @text. */
static inline char *hex_text(const uint8_t *bytes, size_t n, char *text)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digit[bytes[i] >> 4];
		text[2 * i + 1] = digit[bytes[i] & 15];
	}
	text[2 * n] = 0;
	return text;
}

#endif
