/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mimalloc 3, whose design differs from 2: its walker, which is called by the walker for mimalloc.
 * And what both have in common. */
#ifndef HEAPS_MIMALLOC_MIMALLOC_H
#define HEAPS_MIMALLOC_MIMALLOC_H

#include "heaps/free_list.h"
#include "heaps/heap.h"
#include "snapshot/image.h"

/* Fills @heap.  Return: 0; -ENOENT: no mimalloc 3 here; or -ENOMEM. */
int mimalloc_3_walk(struct image *img, struct heap *heap);

/* The free lists of a page and its counters. */
struct mi_lists {
	uint64_t free, local_free, thread_free; /* first block of each, without flags; 0: empty */
	uint32_t used, capacity;
};

/* Marks the blocks of the lists in @area.  Damage, and counters that do not agree with the lists,
 * are noted in @heap. */
void mi_mark_lists(struct image *img, struct image_view *view, struct heap *heap,
		   const struct free_list_area *area, const struct mi_lists *lists);

#endif
