/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Free lists of equal blocks in one memory area, linked by the first word of each block. */
#ifndef HEAPS_FREE_LIST_H
#define HEAPS_FREE_LIST_H

#include <stdint.h>
#include "snapshot/image.h"

#define FREE_LIST_BROKEN UINT32_MAX

struct free_list_area {
	uint64_t base;	   /* of block 0 */
	uint64_t size;	   /* of a block, bytes */
	uint32_t capacity; /* blocks */
	uint8_t *is_free;  /* a byte for each block; set for those in a list */
};

/**
 * free_list_mark() - follow a list
 * @view: reads ahead from the base of the area, if that fits
 * Return: number of blocks, or FREE_LIST_BROKEN if the list leads out of the area, between two
 * blocks, to memory that cannot be read, or to a block that is already marked.
 */
uint32_t free_list_mark(struct image *img, struct image_view *view,
			const struct free_list_area *area, uint64_t first);

#endif
