/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LEAKS_OBJECTS_H
#define LEAKS_OBJECTS_H

#include "leaks/image.h"

/* The variable that contains @addr, by the symbol table of its module: "cache+16".
 * Return: false if the module has no symbol there. */
bool object_at(struct image *img, uint64_t addr, char *name, size_t size);

/* The data object called @name of any module.  Return: whether there is one, with its address. */
bool object_find(struct image *img, const char *name, uint64_t *addr);

#endif
