/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The list of blocks that truth.c keeps in a shared file.  The tests compare a heap walk with it.
 */
#ifndef VICTIMS_TRUTH_H
#define VICTIMS_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>

#define TRUTH_SLOTS 8192 /* per thread */

struct truth_block {
	_Atomic uint64_t addr; /* 0: the slot is empty; set after usable, cleared before free() */
	uint64_t usable;       /* result of malloc_usable_size() */
};

struct truth {
	_Atomic uint32_t ready;	   /* threads that have done all their steps */
	_Atomic uint32_t resizing; /* threads in realloc(): each can have two blocks */
	uint32_t owners;	   /* threads that own slots, including those that have ended */
	struct truth_block block[];
};

#endif
