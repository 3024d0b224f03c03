/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ends of blocks that have nothing of Python.  Allocators round sizes up, lists have room for more items, and nothing is
 * cleared: what is there is what was there before, which can be a pointer to memory that was used again. */
#ifndef LEAKS_PYTHON_PYTHON_UNUSED_H
#define LEAKS_PYTHON_PYTHON_UNUSED_H

#include <stdint.h>
#include "leaks/python/python_types.h"

#define PYTHON_HEAD 9u /* words of a block: up to four before the object, and its first five */

#define PYTHON_PADDING 24u /* most bytes behind an object by which an allocator rounds up */

/* Return: how many bytes at the end of a block are not of the object in it; 0: none, or it is not known.  @head: its first
 * words, PYTHON_HEAD of them; those that it does not have are 0.  @size: bytes of the block. */
uint16_t python_unused_by_object(const struct python_types *t, const struct python_type *type,
				 const uint64_t *head, uint64_t size);
/* Return: the same of the block that has the items of a list.  @list: the words of the list from its start. */
uint16_t python_unused_by_items(const uint64_t *list, uint64_t size);

#endif
