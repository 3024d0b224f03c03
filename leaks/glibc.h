/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Between the files of the glibc walker.  Layouts are those of malloc/malloc.c and malloc/arena.c
 * for 64-bit machines, glibc 2.28 to 2.41; no symbols are needed.
 */
#ifndef LEAKS_GLIBC_H
#define LEAKS_GLIBC_H

#include "leaks/walker.h"

#define CHUNK_HEADER   16u /* prev_size, size */
#define CHUNK_MIN      32u
#define CHUNK_FENCE    16u /* size of a fencepost, smaller than any chunk */
#define PREV_INUSE     1u
#define IS_MMAPPED     2u
#define NON_MAIN_ARENA 4u
#define SIZE_BITS      7u
#define CHUNK_ALIGN    16u

/* struct malloc_state since 2.27 */
#define ARENA_MUTEX	 0
#define ARENA_FLAGS	 4
#define ARENA_FASTBINS	 16
#define ARENA_TOP	 96
#define ARENA_BINS	 112
#define ARENA_NEXT	 2160
#define ARENA_SYSTEM_MEM 2184
#define ARENA_SIZE	 2200
#define NUM_FASTBINS	 10
#define NUM_BINS	 127
#define NONCONTIGUOUS	 2u

#define PAGE 4096ull

struct glibc_arena {
	uint64_t addr, top, next, system_mem;
	uint64_t fastbin[NUM_FASTBINS];
	uint32_t mutex, flags;
	bool main;
};

/* struct malloc_par, what of it counts */
struct glibc_par {
	bool known;
	uint32_t n_mmaps;
	uint64_t mmapped_mem, sbrk_base;
};

struct glibc {
	struct image *img;
	struct heap *heap;
	struct image_view view, probe;
	uint64_t main_arena;
	struct glibc_par par;
	VEC(struct glibc_arena) arenas; /* the main one first */
	VEC(uint64_t) cached;		/* in tcaches and fastbins: free, though marked in use */
	int minor;			/* 2.minor, 0: not known */
};

struct chunk {
	uint64_t prev_size, size; /* size with its flag bits */
};

/* glibc_find.c: main_arena, mp_, version, ring of arenas.  Return: 0, -ENOENT, -ENOMEM. */
int glibc_find(struct glibc *g);

/* glibc_chunks.c: the chunks of all arenas.  Return: 0 or -ENOMEM. */
int glibc_walk_arenas(struct glibc *g);
/* Reads a chunk's header.  @v: the window to use. */
bool glibc_chunk(struct glibc *g, struct image_view *v, uint64_t at, struct chunk *c);
/* Private anonymous writable memory, where mappings of the allocator may be.  Thread stacks may be
 * among it. */
bool glibc_anonymous(const struct image_map *m);

/* glibc_mmapped.c: chunks with a mapping of their own. */
int glibc_walk_mmapped(struct glibc *g);

/* glibc_cache.c: takes the blocks of tcaches and fastbins, and the tcaches themselves, out of the
 * list of live blocks, which must be sorted. */
int glibc_take_cached(struct glibc *g);

#endif
