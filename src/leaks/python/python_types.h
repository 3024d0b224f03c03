/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The types of Python that an image has: built-in ones, those of extensions, and classes.
 *
 * Each object refers to its type, and each type to its metatype, until that is `type`, which refers
 * to itself.  So `type` is found by this in the data of modules, and all other types from it.
 * Layout: PyTypeObject of CPython 3.9 to 3.13, Include/cpython/object.h.
 */
#ifndef LEAKS_PYTHON_PYTHON_TYPES_H
#define LEAKS_PYTHON_PYTHON_TYPES_H

#include <stdbool.h>
#include "heaps/heap.h"
#include "snapshot/image.h"

enum python_kind {
	PYTHON_OTHER,
	PYTHON_LIST,
	PYTHON_DICT,
	PYTHON_SET,
	PYTHON_WEAK,
	PYTHON_MODULE,
	/* Exactly these types, not those that are derived from them. */
	PYTHON_STR,
	PYTHON_BYTES,
	PYTHON_INT,
	PYTHON_TUPLE,
};

struct python_type {
	uint64_t addr, base; /* of the type object, and of that of its base; 0: none */
	uint64_t flags;	     /* tp_flags */
	uint32_t size;	     /* least bytes of an object, without what is before it */
	bool fixed;	     /* all objects have this size */
	uint8_t before;	     /* bytes of a block before the object in it */
	bool gc;	     /* the last 16 of these are the links of the garbage collector */
	enum python_kind kind;
	char *name;
	const char *owner; /* file that has it, or Python's; valid as long as the image */
};

struct python_types {
	uint32_t minor; /* of the version 3.x */
	VEC(struct python_type) list;
	uint32_t *slot; /* open addressing: 1 + index in the list */
	uint32_t slots;
	uint64_t low, high; /* range of their addresses */
	/* Static data of Python that has the heads of the collector's lists. */
	VEC(struct heap_range) collectors;
};

/* @n: live blocks @block, by address.  @t: filled; python_types_free() in any case.  Return: 0,
 * with an empty list if there is no `type`; or -ENOMEM. */
int python_types_take(struct python_types *t, struct image *img, const struct heap_block *block,
		      size_t n, uint32_t minor);
void python_types_free(struct python_types *t);

/* Return: index in the list of the type at @addr, or UINT32_MAX. */
uint32_t python_types_find(const struct python_types *t, uint64_t addr);

/* Are these words the state of a collector: three lists, and after them a pointer to the first?
 * @word: PYTHON_COLLECTOR_WORDS words at @addr. */
#define PYTHON_COLLECTOR_WORDS 12u
bool python_is_collector(struct image *img, const uint64_t *word, uint64_t addr);

#endif
