/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sums of all live blocks by type and size. */
#ifndef LEAKS_HEAP_TYPES_H
#define LEAKS_HEAP_TYPES_H

#include "heaps/census.h"

struct heap_type {
	char *type;    /* "app::Node", or "" for blocks without a class */
	char *owner;   /* file of the class, or NULL */
	uint64_t size; /* usable bytes of each block; 0 for classes, whose objects differ in size */
	uint64_t count, bytes;
};
struct heap_types {
	VEC(struct heap_type) list; /* most bytes first */
	uint64_t count, bytes;
};

/* Reads the first word of every block of @c.  Return: 0 or -ENOMEM. */
int heap_types_take(struct heap_types *h, struct image *img, const struct census *c);
void heap_types_free(struct heap_types *h);

#endif
