/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "lib/utf8.h"

#define ESCAPE_LENGTH 4 /* \xNN */

static bool is_printable(uint32_t c)
{
	bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
	bool separator = c == 0x2028 || c == 0x2029;
	bool direction = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
			 (c >= 0x2066 && c <= 0x2069);

	return c != UTF8_INVALID && !control && !separator && !direction;
}

/* Return: the first character that must be escaped, or the end of @s. */
static const char *first_unprintable(const char *s)
{
	for (const char *next = s; *s; s = next) {
		if (!is_printable(utf8_next(&next)))
			break;
	}
	return s;
}

/* Appends the bytes from @s to @end, unchanged or escaped.  Return: false if @buf is full. */
static bool append_text(char *buf, size_t size, size_t *used, const char *s, const char *end,
			bool escape)
{
	size_t n = (size_t)(end - s) * (escape ? ESCAPE_LENGTH : 1);

	if (n >= size - *used)
		return false;
	if (!escape) {
		memcpy(buf + *used, s, n);
	} else {
		for (char *at = buf + *used; s < end; s++, at += ESCAPE_LENGTH)
			snprintf(at, ESCAPE_LENGTH + 1, "\\x%02x", (unsigned char)*s);
	}
	*used += n;
	return true;
}

const char *printable_text(const char *s, char *buf, size_t size)
{
	const char *bad = first_unprintable(s), *next = s;
	size_t used = 0;

	if (!*bad)
		return s;
	for (; *s; s = next) {
		bool escape = !is_printable(utf8_next(&next));

		if (!append_text(buf, size, &used, s, next, escape))
			break;
	}
	buf[used] = '\0';
	return buf;
}
