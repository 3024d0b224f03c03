/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Guesses the type of a block from its bytes: the class of a C++ object by its vtable (stripped
 * programs have class names, too), text, pointers, or numbers.
 */
#ifndef LEAKS_TYPES_TYPES_H
#define LEAKS_TYPES_TYPES_H

#include "snapshot/image.h"

enum shape {
	SHAPE_CLASS, /* C++ object with a vtable */
	SHAPE_TEXT,
	SHAPE_POINTERS, /* at least half of its words are addresses */
	SHAPE_DATA,
	SHAPE_ZEROS,
};

struct type {
	enum shape shape;
	const char *name;  /* SHAPE_CLASS: "app::Node"; else NULL.  Valid as long as struct types */
	const char *owner; /* file of the vtable, or of the memory that an address in the block
			      points to; NULL: none.  Valid as long as the image */
	uint32_t id;	   /* of the class, from 1; 0: no class */
};

struct types;
struct types *types_new(struct image *img);
void types_free(struct types *t);
/* @word: the first word of a block.  Return: true with @out filled if it is a vtable. */
bool types_class(struct types *t, uint64_t word, struct type *out);
/* @content: the first @n bytes of a block, 8-aligned. */
void types_of(struct types *t, const void *content, size_t n, struct type *out);
/* Return: "class", "text", ... */
const char *shape_name(enum shape shape);

#endif
