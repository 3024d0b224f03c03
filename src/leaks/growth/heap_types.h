/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sums of all live blocks by type and size, and of all containers by type. */
#ifndef LEAKS_GROWTH_HEAP_TYPES_H
#define LEAKS_GROWTH_HEAP_TYPES_H

#include "heaps/census.h"
#include "leaks/types/block_names.h"

struct heap_type {
	char *type;  /* "app::Node", or "" for blocks without a name */
	char *owner; /* file of the type, or NULL */
	enum name_source source;
	uint64_t size; /* usable bytes of each block; 0 if it has a name: they differ in size */
	uint64_t count, bytes;
	uint32_t number; /* from 1 */
};

/* All containers of one type. */
struct heap_container {
	char *type; /* "std::map<int, session>" */
	enum name_source source;
	struct container_sum sum;
	/* The largest one; .where is NULL if all are small. */
	uint64_t largest; /* elements */
	char *where;	  /* "g_sessions", "in app::Server at 0x55..." */
	char *module;	  /* path of the file that has the variable, or NULL */
};

struct heap_types {
	VEC(struct heap_type) list; /* most bytes first */
	uint64_t count, bytes;
	VEC(struct heap_container) containers; /* most bytes first */
	uint32_t *type_of; /* by block of the census: the number of its type; NULL: not wanted */
	struct block_notes notes;
};

/**
 * heap_types_take() - name all blocks of @c, and sum them up
 * @type_of: .type_of is wanted: 4 bytes a block
 * Return: 0 or -errno with @err.
 */
int heap_types_take(struct heap_types *h, struct image *img, const struct census *c, bool type_of,
		    struct mp_err *err);
/* As heap_types_take(), for a graph with its index and the names of its blocks.  Return: 0 or
 * -ENOMEM. */
int heap_types_sum(struct heap_types *h, const struct block_names *n, struct modules *m,
		   const struct graph *g, bool type_of);
void heap_types_free(struct heap_types *h);

#endif
