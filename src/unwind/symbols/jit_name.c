/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/jit_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ANONYMOUS  "(anonymous)"
#define MAX_NUMBER 10 /* digits of a line */

_Static_assert(sizeof(ANONYMOUS) + 1 < JIT_NAME_MORE, "room for the longest name that is added");

static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) != 0 ? NULL : text + n;
}

/* Return: what follows the tag of a JavaScript function and its mark, or NULL. */
static const char *javascript(const char *name)
{
	static const char *const tags[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};
	const char *rest = NULL;

	for (size_t i = 0; !rest && i < sizeof(tags) / sizeof(tags[0]); i++)
		rest = after(name, tags[i]);
	return rest && *rest && strchr("~^+*", *rest) ? rest + 1 : rest;
}

bool jit_name_is_javascript(const char *name)
{
	return javascript(name) != NULL;
}

/* Takes ":123" off the end of the first @n bytes of @text.  Return: what is left of them. */
static size_t take_number(const char *text, size_t n, uint32_t *number)
{
	size_t at = n;

	while (at && isdigit((unsigned char)text[at - 1]))
		at--;
	if (!at || at == n || n - at >= MAX_NUMBER || text[at - 1] != ':')
		return n;
	*number = (uint32_t)strtoul(text + at, NULL, 10);
	return at - 1;
}

/* Does a path or an URL begin at @text?  "/app/a.js", "node:fs", "file:///app/a.js". */
static bool begins_source(const char *text, size_t n)
{
	size_t scheme = 0;

	if (n && *text == '/')
		return true;
	while (scheme < n && islower((unsigned char)text[scheme]))
		scheme++;
	return scheme > 1 && scheme < n && text[scheme] == ':';
}

/* Return: the number of bytes before the blank that separates the function from its source: both can
 * contain blanks ("get size", "/my app/a.js").  @n: there is no blank. */
static size_t function_length(const char *text, size_t n)
{
	size_t last = n;

	for (size_t i = 0; i < n; i++) {
		if (text[i] != ' ')
			continue;
		if (begins_source(text + i + 1, n - i - 1))
			return i;
		last = i;
	}
	return last;
}

/* Return: a copy of the @n bytes at @text in *@buf, which moves behind it. */
static const char *copy(char **buf, const char *text, size_t n)
{
	char *to = *buf;

	memcpy(to, text, n);
	to[n] = 0;
	*buf = to + n + 1;
	return to;
}

static void split_javascript(const char *text, char *buf, struct mp_symbol *out)
{
	uint32_t last = 0, before = 0;
	size_t n = strlen(text), end, function;

	end = take_number(text, n, &last);
	end = take_number(text, end, &before);
	function = function_length(text, end);
	out->function =
	    function ? copy(&buf, text, function) : copy(&buf, ANONYMOUS, strlen(ANONYMOUS));
	if (function + 1 >= end)
		return;
	text += function + 1;
	n = end - function - 1;
	/* Modules have URLs.  One with an escaped character is not a path. */
	if (n > 8 && after(text, "file:///") && !memchr(text, '%', n)) {
		text += 7;
		n -= 7;
	}
	out->source = copy(&buf, text, n);
	out->line = before ? before : last;
	out->column = before ? last : 0;
}

static void split_python(const char *text, char *buf, struct mp_symbol *out)
{
	const char *colon = strstr(text, ":/");

	if (!colon)
		colon = strrchr(text, ':');
	if (!colon || colon == text)
		return;
	out->function = copy(&buf, text, (size_t)(colon - text));
	if (colon[1])
		out->source = copy(&buf, colon + 1, strlen(colon + 1));
}

void jit_name_split(const char *name, char *buf, struct mp_symbol *out)
{
	const char *rest = javascript(name);

	*out = (struct mp_symbol){.function = name, .raw_function = name};
	if (rest)
		split_javascript(rest, buf, out);
	else if ((rest = after(name, "py::")))
		split_python(rest, buf, out);
}
