/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the objects of CPython 3.9 to 3.13 have what several files of this folder need: listobject.h, unicodeobject.h. */
#ifndef LEAKS_PYTHON_PYTHON_LAYOUT_H
#define LEAKS_PYTHON_PYTHON_LAYOUT_H

#include <stdint.h>

/* In words from the object's start. */
enum {
	LIST_SIZE = 2,
	LIST_ITEMS = 3,
	LIST_ROOM = 4,
	TEXT_LENGTH = 2, /* characters */
	TEXT_STATE = 4,
};

/* Bits of a text's state. */
#define TEXT_KIND(state) ((state) >> 2 & 7) /* bytes a character */
#define TEXT_COMPACT	 (1u << 5)	    /* the characters are in the same block */
#define TEXT_ASCII	 (1u << 6)

/* Return: bytes from the start of a compact text to its characters. */
static inline uint64_t text_start(uint32_t minor, uint64_t state)
{
	if (minor < 12)
		return state & TEXT_ASCII ? 48 : 72;
	return state & TEXT_ASCII ? 40 : 56;
}

#endif
