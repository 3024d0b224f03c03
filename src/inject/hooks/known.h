/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The allocators that replace the C library's: by which functions they are recognized. */
#ifndef INJECT_HOOKS_KNOWN_H
#define INJECT_HOOKS_KNOWN_H

#include <stdbool.h>

struct known_allocator {
	const char *name;
	const char *shown_by[3]; /* a module that defines one of these functions contains it */
	const char *prefix[2];	 /* of names that only its functions have */
};

/* Return: the allocator that a module with the function @name contains, or NULL.  If a module has
 * several, the one with the lowest address in the table counts. */
const struct known_allocator *known_by_function(const char *name);
/* Does @name begin with the prefix of an allocator?  Other names are no proof of one: any library
 * can define malloc, free and the operators. */
bool known_prefix(const char *name);

#endif
