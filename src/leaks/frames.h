/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The frames on the stacks of an image's threads. */
#ifndef LEAKS_FRAMES_H
#define LEAKS_FRAMES_H

#include "leaks/modules.h"
#include "lib/vec.h"

struct stack_frame {
	uint64_t low, high; /* addresses that belong to it; high is the caller's stack pointer */
	uint64_t pc;	    /* where the thread is in it, not the return address */
	uint64_t sp, fp;    /* its stack pointer and frame pointer; 0: not known */
	pid_t tid;
};

/* How far each thread's stack could be unwound. */
struct stack_extent {
	pid_t tid;
	uint64_t low, high; /* of all its frames */
	bool complete;	    /* the last frame is the outermost one */
};

struct frames {
	VEC(struct stack_frame) list; /* sorted by address */
	VEC(struct stack_extent) extents;
};

/* Unwinds all threads of @img whose registers are known.  Return: 0 or -ENOMEM. */
int frames_take(struct frames *f, struct image *img, struct modules *m);
void frames_free(struct frames *f);
/* Return: the index of the frame that @addr belongs to; -1: none. */
long frames_at(const struct frames *f, uint64_t addr);
/* Return: the extent of the thread's stack, or NULL. */
const struct stack_extent *frames_extent(const struct frames *f, pid_t tid);

#endif
