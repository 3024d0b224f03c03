/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/stack_type.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 16 /* innermost ones: farther out, a type is that of something else */

/* Length of the first of the template arguments at @s; 0: they do not end. */
static size_t argument_length(const char *s)
{
	int depth = 0;

	for (size_t i = 0; s[i]; i++) {
		if (strchr("<([{", s[i]))
			depth++;
		else if (!depth && (s[i] == '>' || s[i] == ','))
			return i;
		else if (strchr(">)]}", s[i]))
			depth--;
	}
	return 0;
}

/* Return: the first template argument if the function's name is @function, optionally that
 * argument, and @member. */
static char *argument_of(const char *name, const char *function, const char *member)
{
	const size_t length = strlen(function);
	size_t n;

	if (strncmp(name, function, length) != 0 || name[length] != '<')
		return NULL;
	name += length + 1;
	n = argument_length(name);
	if (!n || (*member && strncmp(name + n, member, strlen(member)) != 0))
		return NULL;
	while (n && isspace((unsigned char)name[n - 1]))
		n--;
	return strndup(name, n);
}

/* A function whose name begins with its return type: "std::shared_ptr<T> std::make_shared<T>()". */
static const char *without_return_type(const char *name)
{
	int depth = 0;

	for (const char *c = name; *c && *c != '('; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>')
			depth--;
		else if (*c == ' ' && !depth && !strncmp(c, " std::", 6))
			return c + 1;
	}
	return name;
}

static char *type_of(const char *name)
{
	static const struct {
		const char *function, *member;
	} known[] = {
	    {"std::allocator", ">::allocate("},
	    {"std::__new_allocator", ">::allocate("},
	    {"__gnu_cxx::new_allocator", ">::allocate("},
	    {"std::__1::allocator", ">::allocate"},
	    {"std::make_unique", ""},
	    {"std::make_shared", ""},
	};
	char *type = NULL;

	name = without_return_type(name);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !type; i++)
		type = argument_of(name, known[i].function, known[i].member);
	return type;
}

/* What std::make_shared() allocates has the object and its counters. */
static char *without_counters(char *type)
{
	char *object = argument_of(type, "std::_Sp_counted_ptr_inplace", "");

	if (!object)
		return type;
	free(type);
	return object;
}

char *stack_type(const struct shown_stack *s)
{
	char *type = NULL;

	for (uint32_t i = 0; i < s->n && i < MAX_FRAMES && !type; i++)
		type = type_of(s->at[i].full);
	return type ? without_counters(type) : NULL;
}
