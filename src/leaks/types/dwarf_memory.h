/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A cache of an image's memory, for reads in the order of pointers instead of addresses. */
#ifndef LEAKS_TYPES_DWARF_MEMORY_H
#define LEAKS_TYPES_DWARF_MEMORY_H

#include "snapshot/image.h"

struct dwarf_memory;

/* @img: must stay.  @bytes: wanted size of the cache; it has 4 to 256 MiB, and uses what is read.
 * Return: NULL when out of memory. */
struct dwarf_memory *dwarf_memory_new(struct image *img, uint64_t bytes);
void dwarf_memory_free(struct dwarf_memory *m);
/* Reads an unsigned number of @size (1, 2, 4 or 8) bytes.  Return: false if it cannot be read. */
bool dwarf_memory_number(struct dwarf_memory *m, uint64_t addr, unsigned int size, uint64_t *value);

#endif
