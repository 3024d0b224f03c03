/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The data structures of mimalloc 2, for the code that finds and walks them. */
#ifndef HEAPS_MIMALLOC_MIMALLOC_2_H
#define HEAPS_MIMALLOC_MIMALLOC_2_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/addr_list.h"
#include "heaps/heap.h"
#include "lib/vec.h"
#include "snapshot/image.h"

#define MI2_SLICE      (64ull << 10)
#define MI2_MAX_SLICES 513
#define MI2_PAGE_BYTES 96 /* the largest mi_page_t */

/* Where a page's first block is. */
enum mi2_start {
	MI2_START_384,	     /* blocks of 8 to 1024 bytes: 384 bytes from the start of its slices */
	MI2_START_MULTIPLES, /* up to 64 bytes: three blocks, up to 512: one */
	MI2_START_FIELD,     /* the page says so */
};

/* What differs between versions: offsets in mi_segment_t, mi_page_t and mi_heap_t. */
struct mi2_layout {
	const char *version;
	enum mi2_start start_is;
	uint16_t used;	 /* followed by the cookie */
	uint16_t slices; /* followed by info_slices, kind, entries, thread */
	uint16_t pages;
	uint8_t page_bytes, page_local_free, page_used, page_block_size;
	uint8_t page_start;	  /* 0: there is no such field */
	uint8_t page_thread_free; /* followed by the heap */
	uint16_t heap_delayed;	  /* followed by the thread */
	uint16_t heap_cookie, heap_pages;
};

/* mi_page_t, which also describes free runs of slices (block_size 0). */
struct mi2_page {
	uint64_t addr, bytes; /* its slices */
	uint32_t slices, used;
	uint16_t capacity, reserved;
	uint64_t block_size, start;
	uint64_t free, local_free, thread_free, heap;
};

struct mi2_segment {
	uint64_t used, cookie, slices, info_slices;
	uint32_t kind, pad;
	uint64_t entries, thread;
	uint8_t pages[MI2_MAX_SLICES * MI2_PAGE_BYTES];
};

/* A heap and its counters; the walk subtracts what it finds. */
struct mi2_heap {
	uint64_t addr, thread;
	int64_t pages, segments;
};

struct mi2 {
	struct image *img;
	struct heap *heap;
	const struct mi2_layout *layout;
	const char *version; /* of mimalloc, as far as it is known */
	uint64_t cookie;
	bool seen;   /* there are segments, of whatever layout */
	bool unsure; /* several layouts are consistent with them, and have other blocks */
	VEC(uint64_t) segments; /* by address */
	VEC(struct mi2_heap) heaps;
	struct addr_list delayed;
	struct image_view view;
	struct mi2_segment seg; /* the current one */
};

/* Finds the layout and the segments.  Return: 0; -ENOENT: no mimalloc 2; -ENOTSUP: an unknown
 * layout; -ENOMEM. */
int mi2_find(struct mi2 *w);
/* Makes the segment at @addr the current one.  Return: whether it could be read. */
bool mi2_read(struct mi2 *w, uint64_t addr);
/* Sets @p to what entry @slice of the current segment, at @segment, says. */
void mi2_parse(const struct mi2 *w, uint64_t segment, uint64_t slice, struct mi2_page *p);
/* Is a page consistent with the layout?  @p: with a block_size */
bool mi2_valid(const struct mi2 *w, const struct mi2_page *p);

#endif
