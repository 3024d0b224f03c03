/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of C++ types as people write them. */
#ifndef LEAKS_TYPES_CXX_TYPE_H
#define LEAKS_TYPES_CXX_TYPE_H

#include <stddef.h>

#define CXX_TYPE_MAX 512 /* longer names are cut */

/**
 * cxx_type_shorten() - leave out of a type's name what the standard library adds to it
 * @name: "std::map<int, std::__cxx11::basic_string<char, std::char_traits<char>, ... >, ... >"
 * @out: CXX_TYPE_MAX bytes: "std::map<int, std::string>"
 * Template arguments are left out if they are the default; inline namespaces for versions are, too.
 */
void cxx_type_shorten(const char *name, char *out);

#endif
