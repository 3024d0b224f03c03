/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/prompt.h"

#include <stdio.h>
#include <string.h>
#include "lib/printable.h"

void prompt_begin(struct prompt *p, enum prompt_for what, const char *text)
{
	p->what = what;
	snprintf(p->text, sizeof(p->text), "%s", text);
}

/* Encodes a character as UTF-8.  Return: number of bytes. */
static size_t encode(uint32_t c, char out[5])
{
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	out[n] = 0;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n > 1 ? n : 0] | c);
	return n;
}

void prompt_add(struct prompt *p, uint32_t character)
{
	size_t length = strlen(p->text), n;
	char text[5];

	if (!character || character > 0x10ffff)
		return;
	n = encode(character, text);
	if (printable(text) == text && length + n < sizeof(p->text))
		memcpy(p->text + length, text, n + 1);
}

void prompt_backspace(struct prompt *p)
{
	size_t n = strlen(p->text);

	while (n && ((unsigned char)p->text[n - 1] & 0xc0) == 0x80)
		n--;
	p->text[n ? n - 1 : 0] = 0;
}
