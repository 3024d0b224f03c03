/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files of the glibc walker.  The layouts are those of malloc/malloc.c and
 * malloc/arena.c of glibc 2.28 to 2.41, by the size of a word (SIZE_SZ); no symbols are needed.
 */
#ifndef HEAPS_GLIBC_GLIBC_H
#define HEAPS_GLIBC_GLIBC_H

#include "heaps/heap.h"
#include "snapshot/image.h"

#define PREV_INUSE     1u
#define IS_MMAPPED     2u
#define NON_MAIN_ARENA 4u
#define SIZE_BITS      7u

/* struct malloc_state since 2.27 begins with these on all architectures. */
#define ARENA_MUTEX    0
#define ARENA_FLAGS    4
#define ARENA_SIZE_MAX 2200
#define NUM_FASTBINS   10
#define NUM_BINS       127
#define NONCONTIGUOUS  2u

#define TCACHE_BINS 64

/* The smallest page size: mappings begin and end at multiples of it. */
#define PAGE 4096ull

/* What follows from the word size. */
struct glibc_layout {
	uint32_t word;
	uint32_t header;    /* prev_size and size of a chunk; also the size of a fencepost */
	uint32_t chunk_min; /* chunk sizes and user addresses are multiples of align */
	uint32_t align;
	/* struct malloc_state since 2.27 */
	uint32_t fastbins, top, bins, next, system_mem, arena_size;
	/* struct heap_info, to 2.34 and since 2.35; its alignment HEAP_MAX_SIZE, also with huge
	 * pages */
	uint32_t heap_header[2];
	uint64_t heap_max[4];
	/* struct malloc_par, as distances from sbrk_base, to 2.34 and since 2.35 */
	uint32_t n_mmaps[2], top_pad[2];
	uint32_t tcache_max_bytes; /* the default */
	/* struct tcache_perthread_struct: offset of the entries, 2.26 to 2.29 and since 2.30.  They
	 * follow the counts, of one or two bytes each. */
	uint32_t tcache_entries[2];
};

struct glibc_arena {
	uint64_t addr, top, next, system_mem;
	uint64_t fastbin[NUM_FASTBINS];
	uint32_t mutex, flags;
	bool main;
};

/* The relevant members of struct malloc_par. */
struct glibc_par {
	bool known;
	uint32_t n_mmaps;
	uint64_t mmapped_mem, sbrk_base;
};

struct glibc {
	struct image *img;
	struct heap *heap;
	const struct glibc_layout *l;
	struct image_view view, probe;
	uint64_t main_arena;
	const char *module; /* that contains its code: path in the image's maps */
	struct glibc_par par;
	VEC(struct glibc_arena) arenas; /* the main one is first */
	VEC(uint64_t) heaps;  /* of the arena that is walked, as far as they were walked */
	VEC(uint64_t) cached; /* in tcaches and fastbins: free, but marked in use */
	int minor;	      /* 2.minor; 0: not known */
};

struct chunk {
	uint64_t prev_size, size; /* size with its flag bits */
};

/* glibc_layout.c.  Return: the layout, or NULL if there is none for the architecture's word size.
 */
const struct glibc_layout *glibc_layout(const struct arch *arch);

/* Return: the word at @offset of @buf. */
static inline uint64_t glibc_word(const struct glibc *g, const void *buf, uint64_t offset)
{
	return arch_word(g->img->arch, (const char *)buf + offset);
}

/* find.c: finds main_arena, mp_, the version and the ring of arenas.  Return: 0, -ENOENT,
 * -ENOMEM. */
int glibc_find(struct glibc *g);

/* chunks.c: walks the chunks of all arenas.  Return: 0 or -ENOMEM. */
int glibc_walk_arenas(struct glibc *g);
/* Reads a chunk's header without reading ahead, if nothing near it will be read. */
bool glibc_chunk_alone(struct glibc *g, uint64_t at, struct chunk *c);
/* Reads a chunk's header through a window, if others near it will be read. */
bool glibc_chunk_at(struct glibc *g, struct image_view *v, uint64_t at, struct chunk *c);
/* Private anonymous writable memory, where the allocator's mappings can be.  It can also contain
 * thread stacks. */
bool glibc_anonymous(const struct image_map *m);

/* mmapped.c: finds chunks that have their own mappings.  Return: 0 or -ENOMEM. */
int glibc_walk_mmapped(struct glibc *g);

/* inside.c: was the thread stopped in the module's code, but not in a blocking system call?
 */
bool glibc_thread_inside(struct glibc *g, const struct image_thread *th);
/* Calls @take for each register of @th and each word of its innermost frames, until it returns
 * non-zero.  Return: what @take returned last. */
int glibc_inside_words(struct glibc *g, const struct image_thread *th,
		       int (*take)(void *ctx, uint64_t word), void *ctx);

/* cache.c: removes the blocks in tcaches and fastbins, and the tcaches themselves, from the
 * list of live blocks, which must be sorted.  Return: 0 or -ENOMEM. */
int glibc_take_cached(struct glibc *g);

#endif
