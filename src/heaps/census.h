/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All heaps of an image: every live block of every allocator, sorted by address.
 *
 * Each allocator has a walker (walker.h, and a folder for each), which lists the blocks of one heap
 * (heap.h).  A census runs them all.  consistent.h repeats it until no thread is changing a heap;
 * resident.h adds the rest of the process's memory.
 */
#ifndef HEAPS_CENSUS_H
#define HEAPS_CENSUS_H

#include "heaps/heap.h"
#include "snapshot/image.h"

struct census {
	VEC(struct heap) heaps;
	VEC(struct heap_block) blocks; /* moved here from the heaps */
	VEC(struct heap_range) owned;  /* sorted */
	VEC(struct heap_range) skipped;
	bool busy;	   /* a thread holds a lock of one of the heaps */
	bool passing;	   /* a heap is not exact now, but might be in a moment */
	bool exact;	   /* all heaps are exact, and .unknown is empty */
	char unknown[400]; /* names an allocator that is present but cannot be walked: its memory is
			      treated as roots */
};

/**
 * census_take() - run every walker on @img
 * Return: 0; -ENOENT with @err: no known allocator has a block in it; or another -errno with @err.
 */
int census_take(struct census *c, struct image *img, struct mp_err *err);
void census_free(struct census *c);
/* Sum of the live bytes of all heaps. */
uint64_t census_live_bytes(const struct census *c);

#endif
