/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the resident memory of a process is: page by page, so that the parts make up the whole. */
#ifndef LEAKS_ACCOUNT_H
#define LEAKS_ACCOUNT_H

#include "leaks/census.h"

/* Resident bytes.  The first five are what heaps own. */
struct account {
	uint64_t live;	   /* in live blocks */
	uint64_t cached;   /* free blocks in the caches of threads */
	uint64_t metadata; /* headers and tables of allocators */
	uint64_t free;	   /* free, and kept by allocators: fragmentation included */
	uint64_t stacks;
	uint64_t modules_data; /* of programs and libraries, written to or not */
	uint64_t modules_text;
	uint64_t files;	    /* other mapped files */
	uint64_t shared;    /* shared memory without a file's name, and devices */
	uint64_t anonymous; /* the rest: mappings of the program itself */
	uint64_t total;	    /* of all these */
	uint64_t rss;	    /* what the kernel reports */
	uint64_t swap;
	/* Live blocks that no page has been touched of count here only. */
	uint64_t live_untouched;
};

/* Where the stack pointers of threads were; zero-initialize, vec_free(). */
struct account_stacks {
	VEC(uint64_t) sp;
};
/* Of the threads of @img, which may then be closed.  Return: 0 or -ENOMEM. */
int account_stacks(struct account_stacks *s, const struct image *img);

/**
 * account_take() - look at the pages of the running process @pid
 * @c, @stacks: of an image taken a moment ago
 * Reads /proc/PID/pagemap; the process runs on, so the sum is that of a few moments.
 * Return: 0 or -errno with @err.
 */
int account_take(struct account *a, pid_t pid, const struct account_stacks *stacks,
		 const struct census *c, struct mp_err *err);

#endif
