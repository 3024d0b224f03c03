/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Variables of a program, by the symbol tables of its modules. */
#ifndef LEAKS_GROWTH_OBJECTS_H
#define LEAKS_GROWTH_OBJECTS_H

#include "snapshot/image.h"

/* Finds the data object called @name in any module.  Return: true with its address in *@addr. */
bool object_find(struct image *img, const char *name, uint64_t *addr);

#endif
