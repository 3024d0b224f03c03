/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/svg.h"

void svg_text(const char *s, FILE *out)
{
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		switch (*p) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*p < 0x20 || *p >= 0x7f ? '?' : *p, out);
		}
	}
}
