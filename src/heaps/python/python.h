/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pymalloc, which CPython has inside of its process: objects and buffers of up to 512 bytes live in
 * arenas that it maps itself.
 *
 * Layout: Objects/obmalloc.c of CPython 3.9 to 3.13, and Include/internal/pycore_obmalloc.h from
 * 3.12 on.  An array of arena objects lists the arenas.  An arena is cut into pools of equal blocks,
 * each with a header.
 */
#ifndef HEAPS_PYTHON_PYTHON_H
#define HEAPS_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/heap.h"
#include "snapshot/image.h"

#define PY_OLDEST 9 /* of 3.x: the versions whose layout is known */
#define PY_NEWEST 13

/* struct arena_object */
struct py_arena {
	uint64_t address;      /* 0: not allocated */
	uint64_t pool_address; /* the next pool that was never used */
	uint32_t nfreepools, ntotalpools;
	uint64_t freepools, nextarena, prevarena;
};
_Static_assert(sizeof(struct py_arena) == 48, "as in CPython");

/* struct pool_header */
struct py_pool {
	uint32_t count, pad; /* blocks in use */
	uint64_t freeblock, nextpool, prevpool;
	uint32_t arenaindex, szidx, nextoffset, maxnextoffset;
};
_Static_assert(sizeof(struct py_pool) == 48, "as in CPython");

struct py_heap {
	uint32_t minor;	    /* of the version 3.x */
	bool free_threaded; /* it has mimalloc inside instead */
	uint64_t arena_size, pool_size;
	uint64_t array;	    /* of arena objects */
	uint32_t max;	    /* objects in it */
	uint32_t allocated; /* arenas */
};

/**
 * python_find() - find the array of arenas of the process's Python
 * @h: filled; of an unknown version, and without arenas, only .minor and .free_threaded
 * Return: 0; -ENOENT: there is no Python here, or it does not use arenas (PYTHONMALLOC=malloc);
 * -ENOTSUP: its version is not known; or -ENOMEM.
 */
int python_find(struct image *img, struct py_heap *h);

/* Return: the minor version of the Python to which @h belongs; 0: it is another allocator's. */
uint32_t python_minor(const struct heap *h);

/* Return: the first pool of the arena at @address: pools are aligned to their size. */
static inline uint64_t python_first_pool(const struct py_heap *h, uint64_t address)
{
	return (address + h->pool_size - 1) & ~(h->pool_size - 1);
}

/* Can @a be an arena: are its numbers possible, and is its memory there? */
bool python_arena_valid(const struct image *img, const struct py_heap *h, const struct py_arena *a);

#endif
