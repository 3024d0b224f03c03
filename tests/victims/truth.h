/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What truth.c holds, in a file that it maps shared: the tests compare a heap walk with it. */
#ifndef VICTIMS_TRUTH_H
#define VICTIMS_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>

#define TRUTH_SLOTS 8192 /* per thread */

struct truth_block {
	_Atomic uint64_t addr; /* 0: the slot is empty; set after usable, cleared before free() */
	uint64_t usable;       /* as malloc_usable_size() says */
};

struct truth {
	_Atomic uint32_t ready;	   /* threads that have done their share */
	_Atomic uint32_t resizing; /* threads in realloc(): each may hold two blocks */
	uint32_t owners;	   /* threads that own slots, dead ones included */
	struct truth_block block[];
};

#endif
