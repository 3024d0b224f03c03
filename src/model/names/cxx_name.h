/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of demangled names of functions in C++ and Rust. */
#ifndef MODEL_NAMES_CXX_NAME_H
#define MODEL_NAMES_CXX_NAME_H

#include <stddef.h>

struct cxx_span {
	const char *at;
	size_t n;
};

/**
 * cxx_qualified() - find the qualified name of a function
 * @name: as the demangler writes it: "void ns::f<int>(int) const"
 *
 * Return: the part without return type, parameters and what follows them: "ns::f<int>".
 */
struct cxx_span cxx_qualified(const char *name);

/* Return: the qualified name with "<...>" for each list of template arguments, to be freed by the
 * caller; NULL when out of memory. */
char *cxx_short(const char *name);

/* Return: the name with "<...>" for each text in angle brackets, except in the names of operators, to
 * be freed by the caller; NULL when out of memory. */
char *cxx_without_arguments(const char *name);

/* Return: length of the class or namespace in front of the function's own name in @name, which is
 * of cxx_short(): 2 for "ns::f<...>"; 0: it has none. */
size_t cxx_scope(const char *name);

#endif
