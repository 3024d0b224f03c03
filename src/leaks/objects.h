/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Variables of a program, by the symbol tables of its modules. */
#ifndef LEAKS_OBJECTS_H
#define LEAKS_OBJECTS_H

#include "snapshot/image.h"

/* Names the variable that contains @addr, from the symbol table of its module: "cache+16".  Return:
 * false if the module has no symbol there. */
bool object_at(struct image *img, uint64_t addr, char *name, size_t size);

/* Finds the data object called @name in any module.  Return: true with its address in *@addr. */
bool object_find(struct image *img, const char *name, uint64_t *addr);

#endif
