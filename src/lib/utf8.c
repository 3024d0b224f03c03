/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/utf8.h"

#include <stddef.h>

/* Return: the length of the sequence that starts with byte @first, 0 if none does. */
static size_t sequence_length(unsigned char first)
{
	return first < 0x80		       ? 1
	       : first >= 0xc2 && first < 0xe0 ? 2
	       : first >= 0xe0 && first < 0xf0 ? 3
	       : first >= 0xf0 && first < 0xf5 ? 4
					       : 0;
}

/* Return: whether the second byte makes an overlong form, a surrogate or a code point above
 * U+10FFFF. */
static bool second_is_forbidden(const unsigned char *s)
{
	return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	       (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
}

uint32_t utf8_next(const char **text)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *s = (const unsigned char *)*text;
	size_t n = sequence_length(s[0]);
	uint32_t c = s[0] & first_bits[n];

	(*text)++;
	if (!n || (n > 1 && second_is_forbidden(s)))
		return UTF8_INVALID;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return UTF8_INVALID;
		c = c << 6 | (s[i] & 0x3f);
	}
	*text += n - 1;
	return c;
}

bool utf8_is_valid(const char *s)
{
	while (*s) {
		if (utf8_next(&s) == UTF8_INVALID)
			return false;
	}
	return true;
}

void utf8_clean(char *s)
{
	const char *next = s;

	while (*s) {
		if (utf8_next(&next) == UTF8_INVALID)
			*s = '?';
		s += next - s;
	}
}
