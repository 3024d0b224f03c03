/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/utf8.h"

#include <string.h>

/* Length of the sequence at @s, 0 if it is none. */
static size_t sequence(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;

	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void utf8_clean(char *s)
{
	size_t left = strlen(s);

	while (left) {
		size_t n = sequence((unsigned char *)s, left);

		if (!n) {
			*s = '?';
			n = 1;
		}
		s += n;
		left -= n;
	}
}
