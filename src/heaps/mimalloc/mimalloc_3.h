/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The data structures of mimalloc 3, for the code that finds and walks them. */
#ifndef HEAPS_MIMALLOC_MIMALLOC_3_H
#define HEAPS_MIMALLOC_MIMALLOC_3_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/heap.h"
#include "heaps/scan.h"
#include "lib/vec.h"
#include "snapshot/image.h"

#define MI3_SLICE_SHIFT	 16
#define MI3_SLICE	 (1ull << MI3_SLICE_SHIFT)
#define MI3_SUB_SHIFT	 29   /* log2 of the bytes covered by a part of the map */
#define MI3_SUB_WORDS	 8192 /* slices in a part */
#define MI3_MAX_KEYS	 256  /* parts that are tried, to find the map */
#define MI3_CHUNK	 (256ull << 20)
#define MI3_CHUNK_SLICES (MI3_CHUNK >> MI3_SLICE_SHIFT)
#define MI3_MAX_QUEUES	 75

/* Where the header of a page is. */
enum mi3_header {
	MI3_BEFORE,   /* its blocks */
	MI3_IN_ARENA, /* or before */
	MI3_IN_CHUNK, /* or elsewhere, but the table of the chunk points to it */
};

/* What the field start says: the address of the first block, or its distance from the header. */
enum mi3_start { MI3_ADDRESS, MI3_WORDS, MI3_BYTES };

/* What differs between versions: offsets in mi_page_t, in the page map, in mi_arena_t, and in the
 * heap (or a thread's part of it). */
struct mi3_layout {
	const char *version;
	enum mi3_header header;
	enum mi3_start start_is;
	uint8_t page_bytes;
	uint8_t thread, free, used, capacity, local_free, thread_free, block_size, start, heap;
	uint8_t next, memid;
	uint8_t arena_kind; /* MI_MEM_ARENA */
	uint8_t map;	    /* the first part of the page map */
	/* MI3_IN_CHUNK: the table has the entry of slice i at i times this, modulo its length */
	uint8_t slot_step;
	uint8_t arena_slices;
	uint16_t heap_pages; /* page_count; or the queues of pages, which have a count each */
	uint8_t queues;
};

struct mi3_page {
	uint64_t thread, free, local_free, thread_free, block_size, raw_start, start, heap;
	uint64_t next, prev;
	uint16_t used, capacity, reserved;
	struct {
		uint64_t arena;
		uint32_t slice, slices;
		uint8_t kind, flags[7];
	} mem;
};

struct mi3_heap {
	uint64_t addr;
	int64_t pages; /* its counter; the walk subtracts what it finds */
};

struct mi3 {
	struct image *img;
	struct heap *heap;
	struct image_view view;
	const struct mi3_layout *layout;
	uint64_t map;
	uint64_t last, end; /* header of the last page, end of its blocks */
	uint32_t pageless;  /* entries of the map without a page */
	uint64_t key[MI3_MAX_KEYS];
	size_t n_keys;
	VEC(struct mi3_heap) heaps;
	VEC(uint64_t) arenas;
	uint64_t sub[MI3_SUB_WORDS];
};

static inline uint64_t mi3_word(struct mi3 *w, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(w->img, addr, &word) ? word : 0;
}

static inline uint64_t mi3_end(const struct mi3_page *p)
{
	return p->start + p->block_size * p->reserved;
}

static inline uint64_t mi3_slice(uint64_t key, size_t i)
{
	return key << MI3_SUB_SHIFT | (uint64_t)i << MI3_SLICE_SHIFT;
}

/* How many parts the page map has. */
static inline uint64_t mi3_parts(const struct mi3 *w)
{
	return 1ull << (w->img->arch->address_bits - MI3_SUB_SHIFT);
}

/* Finds the page map and the layout.  Return: 1; 0: there is none; or -ENOMEM. */
int mi3_find(struct mi3 *w);
/* Reads the part of @map for @key into @w->sub.  Return: whether there is one. */
bool mi3_read_part(struct mi3 *w, uint64_t map, uint64_t key);
/* Reads the header at @at.  Return: whether it could be read. */
bool mi3_read(struct mi3 *w, uint64_t at, struct mi3_page *p);
/* Is the header at @at consistent with itself, and with the map's entry for @slice? */
bool mi3_valid(struct mi3 *w, uint64_t at, uint64_t slice, const struct mi3_page *p);

#endif
