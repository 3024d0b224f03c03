/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Accounts for the resident memory of a process page by page, so that the parts add up to the
 * total. */
#ifndef HEAPS_RESIDENT_H
#define HEAPS_RESIDENT_H

#include "heaps/census.h"

/* Resident bytes.  The first four are within heaps. */
struct resident {
	uint64_t live;	   /* in live blocks */
	uint64_t cached;   /* free blocks in the threads' caches */
	uint64_t metadata; /* headers and tables of allocators */
	uint64_t free;	   /* free memory that allocators keep, including fragmentation */
	uint64_t stacks;
	uint64_t modules_data; /* data of programs and libraries, whether written to or not */
	uint64_t modules_text;
	uint64_t files;	    /* other mapped files */
	uint64_t shared;    /* shared memory without a file name, and devices */
	uint64_t anonymous; /* the rest: mappings that the program made itself */
	uint64_t total;	    /* sum of all parts */
	uint64_t rss;	    /* as the kernel reports it */
	uint64_t swap;
	/* Live bytes in pages that were never touched; they are counted nowhere else. */
	uint64_t live_untouched;
};

/* The stack pointers of the threads.  Zero-initialize; freed by vec_free(). */
struct resident_stacks {
	VEC(uint64_t) sp;
};
/* Takes the stack pointers from the threads of @img, which may be closed afterwards.  Return: 0 or
 * -ENOMEM. */
int resident_stacks(struct resident_stacks *s, const struct image *img);

/**
 * resident_take() - account for the pages of the running process @pid
 * @c, @stacks: from an image taken a moment ago
 * Reads /proc/PID/pagemap.  The process keeps running, so the sum is not of a single moment.
 * Return: 0 or -errno with @err.
 */
int resident_take(struct resident *a, pid_t pid, const struct resident_stacks *stacks,
		  const struct census *c, struct mp_err *err);

#endif
