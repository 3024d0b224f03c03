/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/cxx_type.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_ARGUMENTS 16
#define MAX_DEPTH     24

struct out {
	char *at;
	size_t n;
};

/* Recursion is bounded by MAX_DEPTH. */
static const char *shorten(const char *s, struct out *o, int depth);

static void append_text(struct out *o, const char *s, size_t n)
{
	if (n > CXX_TYPE_MAX - 1 - o->n)
		n = CXX_TYPE_MAX - 1 - o->n;
	memmove(o->at + o->n, s, n);
	o->n += n;
	o->at[o->n] = 0;
}

/* Is the text from @at on "std::NAME<" @first ">"? */
static bool is_default(const char *at, const char *name, const char *first, size_t n)
{
	const size_t length = strlen(name);

	return !strncmp(at, name, length) && !strncmp(at + length, first, n) &&
	       !strcmp(at + length + n, ">");
}

/* Leaves out the trailing arguments of a standard template that are its defaults.  @start: of each
 * argument in o->at.  Return: how many remain. */
static int leave_out(struct out *o, const size_t *start, int n)
{
	static const char *const of_first[] = {"std::char_traits<", "std::less<", "std::hash<",
					       "std::equal_to<", "std::default_delete<"};
	const size_t first = n > 1 ? start[1] - 2 - start[0] : 0;

	while (n > 1) {
		const char *at = o->at + start[n - 1];
		char key[CXX_TYPE_MAX];
		bool leave = !strncmp(at, "std::allocator<", 15);

		snprintf(key, sizeof(key), "%.*s", (int)first, o->at + start[0]);
		for (size_t i = 0; i < sizeof(of_first) / sizeof(of_first[0]); i++)
			leave |= is_default(at, of_first[i], key, first);
		if (!leave)
			break;
		n--;
		o->n = start[n] - 2;
		o->at[o->n] = 0;
	}
	return n;
}

/* Copies the arguments of the template whose name begins at @name in o->at.  @s: behind the "<".
 * Return: behind the ">". */
static const char *arguments(const char *s, struct out *o, size_t name, int depth)
{
	const bool standard = !strncmp(o->at + name, "std::", 5);
	size_t start[MAX_ARGUMENTS];
	int n = 0;

	append_text(o, "<", 1);
	while (*s && *s != '>') {
		if (n < MAX_ARGUMENTS)
			start[n++] = o->n;
		s = shorten(s, o, depth + 1);
		while (*s == ' ')
			s++;
		if (*s != ',')
			break;
		s++;
		while (*s == ' ')
			s++;
		append_text(o, ", ", 2);
	}
	if (standard && n < MAX_ARGUMENTS)
		leave_out(o, start, n);
	append_text(o, ">", 1);
	while (*s == ' ')
		s++;
	return *s == '>' ? s + 1 : s;
}

/* Replaces the name that begins at @name if it has a shorter one. */
static void alias(struct out *o, size_t name)
{
	static const struct {
		const char *name, *alias;
	} of[] = {
	    {"std::basic_string<char>", "std::string"},
	    {"std::basic_string<wchar_t>", "std::wstring"},
	    {"std::basic_string<char16_t>", "std::u16string"},
	    {"std::basic_string<char32_t>", "std::u32string"},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		if (strcmp(o->at + name, of[i].name) != 0)
			continue;
		o->n = name;
		append_text(o, of[i].alias, strlen(of[i].alias));
	}
}

static const char *shorten(const char *s, struct out *o, int depth)
{
	static const char *const inline_namespaces[] = {"__cxx11::", "__1::", "__cxx1998::"};
	size_t name = o->n;
	int nested = 0;

	while (*s && o->n < CXX_TYPE_MAX - 1) {
		if (!nested && (*s == ',' || *s == '>'))
			break;
		if (*s == '<' && depth < MAX_DEPTH && !strstr(o->at + name, "operator")) {
			s = arguments(s + 1, o, name, depth);
			alias(o, name);
			continue;
		}
		if (*s == '(' || *s == '[')
			nested++;
		if ((*s == ')' || *s == ']') && nested)
			nested--;
		if (*s == ' ' && (s[1] == '>' || s[1] == ',' || s[1] == '[')) {
			s++;
			continue;
		}
		for (size_t i = 0; i < 3; i++) {
			const size_t length = strlen(inline_namespaces[i]);

			if (o->n > name && o->at[o->n - 1] == ':' &&
			    !strncmp(s, inline_namespaces[i], length))
				s += length;
		}
		append_text(o, s, 1);
		/* "const std::vector<...>": the template's name begins behind it. */
		if (*s == ' ' || *s == '(')
			name = o->n;
		s++;
	}
	return s;
}

void cxx_type_shorten(const char *name, char *out)
{
	struct out o = {out, 0};

	out[0] = 0;
	while (*name && o.n < CXX_TYPE_MAX - 1) {
		name = shorten(name, &o, 0);
		/* A lone bracket or comma. */
		if (*name)
			append_text(&o, name++, 1);
	}
}
