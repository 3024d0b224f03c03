/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/fit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "lib/utf8.h"

static const char between[] = "  ";
static const char cut[] = "..";
#define CUT 2 /* its columns */

/* Decodes the next character.  Return: its columns. */
static uint32_t next(const char **text, wchar_t *c)
{
	uint32_t code = utf8_next(text);
	int width = code == UTF8_INVALID ? -1 : wcwidth((wchar_t)code);

	*c = width < 0 ? L'?' : (wchar_t)code;
	return width < 0 ? 1 : (uint32_t)width;
}

uint32_t fit_columns(const char *text)
{
	uint32_t sum = 0;
	wchar_t c;

	while (*text)
		sum += next(&text, &c);
	return sum;
}

uint32_t fit_wide(const char *text, uint32_t columns, wchar_t *out, size_t n)
{
	uint32_t sum = 0;

	while (*text && n > 1) {
		wchar_t c;
		uint32_t width = next(&text, &c);

		if (sum + width > columns)
			break;
		sum += width;
		*out++ = c;
		n--;
	}
	*out = 0;
	return sum;
}

const char *fit_tail(const char *text, uint32_t columns)
{
	uint32_t rest = fit_columns(text);

	while (rest > columns) {
		wchar_t c;

		rest -= next(&text, &c);
	}
	/* A mark without a width belongs to the character before it, which is cut off. */
	for (const char *after = text; *after; text = after) {
		wchar_t c;

		if (next(&after, &c))
			break;
	}
	return text;
}

/* Return: bytes of the beginning of @text that has at most @columns and at most @most bytes. */
static size_t head_length(const char *text, uint32_t columns, size_t most)
{
	const char *at = text;
	uint32_t sum = 0;

	while (*at) {
		const char *after = at;
		wchar_t c;

		sum += next(&after, &c);
		if (sum > columns || (size_t)(after - text) > most)
			break;
		at = after;
	}
	return (size_t)(at - text);
}

const char *fit_middle(const char *name, uint32_t columns, char buf[FIT_SIZE])
{
	const size_t half = (FIT_SIZE - sizeof(cut)) / 2;
	const char *tail;
	size_t head, rest;

	if (fit_columns(name) <= columns)
		return name;
	if (columns <= CUT) {
		snprintf(buf, FIT_SIZE, "%.*s", (int)head_length(name, columns, half), name);
		return buf;
	}
	head = head_length(name, (columns - CUT) / 2, half);
	tail = fit_tail(name, columns - CUT - (columns - CUT) / 2);
	rest = head_length(tail, UINT32_MAX, half);
	snprintf(buf, FIT_SIZE, "%.*s%s%.*s", (int)head, name, cut, (int)rest, tail);
	return buf;
}

static uint32_t parts_columns(const struct fit_part *p, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (*p[i].text)
			sum += fit_columns(p[i].text) + (sum ? sizeof(between) - 1 : 0);
	}
	return sum;
}

/* Makes the part of the highest rank shorter.  Return: false if none can be. */
static bool shorten(struct fit_part *p, uint32_t n)
{
	struct fit_part *most = NULL;

	for (uint32_t i = 0; i < n; i++) {
		if (p[i].rank && *p[i].text && (!most || p[i].rank > most->rank))
			most = &p[i];
	}
	if (!most)
		return false;
	most->text = most->brief ? most->brief : "";
	most->brief = NULL;
	return true;
}

const char *fit_parts(struct fit_part *p, uint32_t n, uint32_t columns, char buf[FIT_SIZE])
{
	size_t used = 0;

	while (parts_columns(p, n) > columns && shorten(p, n))
		;
	*buf = 0;
	for (uint32_t i = 0; i < n; i++) {
		size_t room = FIT_SIZE - used - sizeof(between);

		if (!*p[i].text)
			continue;
		used += (size_t)snprintf(buf + used, FIT_SIZE - used, "%s%.*s", used ? between : "",
					 (int)head_length(p[i].text, UINT32_MAX, room), p[i].text);
		if (used + sizeof(between) >= FIT_SIZE)
			break;
	}
	return buf;
}
