/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/cxx_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ANONYMOUS     "(anonymous namespace)"
#define OPERATOR      "operator"
#define OPERATOR_SIGN "<>=!+-*/%^&|~,"

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Return: length of "operator" and its sign at @s, which is inside @name; 0: another word. */
static size_t operator_length(const char *name, const char *s)
{
	size_t n = strlen(OPERATOR);

	if (!starts(s, OPERATOR) || is_word(s[n]) || (s > name && is_word(s[-1])))
		return 0;
	if (starts(s + n, "()") || starts(s + n, "[]"))
		return n + 2;
	return n + strspn(s + n, OPERATOR_SIGN);
}

static bool opens(char c)
{
	return c == '<' || c == '(' || c == '[' || c == '{';
}

static bool closes(const char *name, const char *s)
{
	return *s == ')' || *s == ']' || *s == '}' || (*s == '>' && (s == name || s[-1] != '-'));
}

static bool follows(const char *name, const char *s, const char *word)
{
	size_t n = strlen(word);

	while (s > name && s[-1] == ' ')
		s--;
	return (size_t)(s - name) >= n && !strncmp(s - n, word, n);
}

struct cxx_span cxx_qualified(const char *name)
{
	const char *start = name, *s = name;
	bool is_operator = false;
	int depth = 0;

	while (*s) {
		size_t n = operator_length(name, s);

		if (n && !depth) {
			is_operator = true;
			s += n;
			continue;
		}
		if (starts(s, ANONYMOUS)) {
			s += strlen(ANONYMOUS);
			continue;
		}
		if (!depth && (starts(s, "(*") || starts(s, "(&"))) {
			/* The return type is a pointer to a function: "void (*f(int))(char)". */
			start = s += 2;
			continue;
		}
		if (!depth && *s == '(' && !follows(name, s, "decltype"))
			break;
		if (!depth && starts(s, " [clone"))
			break;
		if (!depth && *s == ' ' && !is_operator)
			start = s + 1;
		if (opens(*s))
			depth++;
		else if (closes(name, s) && depth)
			depth--;
		s++;
	}
	return (struct cxx_span){start, (size_t)(s - start)};
}

/* Return: the end of the list of template arguments that begins at @s. */
static const char *arguments_end(const char *name, const char *s, const char *end)
{
	int depth = 0;

	for (; s < end; s++) {
		if (opens(*s))
			depth++;
		else if (closes(name, s) && !--depth)
			return s + 1;
	}
	return end;
}

/* @first: also replaces a list at the start. */
static char *replace_arguments(struct cxx_span q, bool first)
{
	const char *s = q.at, *end = q.at + q.n;
	/* "<...>" can be longer than what it replaces. */
	char *text = malloc(3 * q.n + 1), *out = text;

	if (!text)
		return NULL;
	while (s < end) {
		size_t n = operator_length(q.at, s);

		if (n) {
			memcpy(out, s, n);
			out += n;
			s += n;
		} else if (*s == '<' && (first || s > q.at)) {
			s = arguments_end(q.at, s, end);
			memcpy(out, "<...>", 5);
			out += 5;
		} else {
			*out++ = *s++;
		}
	}
	*out = 0;
	return text;
}

char *cxx_short(const char *name)
{
	/* A list at the start is of Rust: <T as Trait>::f */
	return replace_arguments(cxx_qualified(name), false);
}

char *cxx_without_arguments(const char *name)
{
	return replace_arguments((struct cxx_span){name, strlen(name)}, true);
}

size_t cxx_scope(const char *name)
{
	size_t scope = 0;
	int depth = 0;

	for (const char *s = name; *s; s++) {
		size_t n = operator_length(name, s);

		if (n && !depth)
			break;
		if (!depth && s[0] == ':' && s[1] == ':')
			scope = (size_t)(s - name);
		if (opens(*s))
			depth++;
		else if (closes(name, s) && depth)
			depth--;
	}
	return scope;
}
