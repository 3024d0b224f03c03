/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All heaps of an image together: every live block of every allocator, in order of address. */
#ifndef LEAKS_CENSUS_H
#define LEAKS_CENSUS_H

#include "leaks/image.h"
#include "leaks/walker.h"

struct census {
	VEC(struct heap) heaps;
	VEC(struct heap_block) blocks; /* moved here from the heaps */
	VEC(struct heap_range) owned;  /* sorted */
	VEC(struct heap_range) skipped;
	bool busy;	   /* a thread was in one of them, with a lock */
	bool passing;	   /* one of them is not, but may be in a moment */
	bool exact;	   /* all heaps are, and .unknown is empty */
	char unknown[400]; /* an allocator that is there and cannot be walked: its memory counts
			    * as roots */
};

/**
 * census_take() - run every walker on @img
 * Return: 0; -ENOENT with @err: no known allocator has a block here; or another -errno with @err.
 */
int census_take(struct census *c, struct image *img, struct mp_err *err);
void census_free(struct census *c);
/* Sum over heaps. */
uint64_t census_live_bytes(const struct census *c);

#endif
