/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stopped threads: does any of them still have business in our code? */
#ifndef INJECT_STACKWALK_H
#define INJECT_STACKWALK_H

#include <stdbool.h>
#include "attach/target.h"
#include "inject/lookup.h"

/**
 * stack_mentions() - does a word of the thread's registers or stack point into one of @spans?
 * Conservative: stale words count too.
 */
bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n);

/**
 * stack_interrupted() - may a signal handler of the thread have interrupted code in @spans?
 * Looks for signal frames by what they hold, so that code without unwind tables does not matter.
 * Return: whether there is one; it may be one that is not in use any more.
 */
bool stack_interrupted(struct target *t, struct thread *th, const struct maps *maps,
		       const struct span *spans, uint32_t n);

/* Does @addr lie on the stack that the thread was made with: the main thread's [stack], or what is
 * mapped below the thread control block?  Its registers have been read. */
bool stack_is_own(const struct target *t, const struct thread *th, const struct maps *maps,
		  uint64_t addr);

/* Does a word of the stack near @frame, where a function was entered, point into one of @spans?
 * Return: false also when the memory is not readable. */
bool stack_frame_is_intact(struct target *t, uint64_t frame, const struct span *spans, uint32_t n);

enum stack_walk {
	WALK_CLEAR,  /* reached the outermost frame; no frame's pc is in a span */
	WALK_INSIDE, /* one is */
	WALK_LOST,   /* could not be completed; none so far */
};

/**
 * stack_walk() - walk the stack by the session's tables
 * @block: our mapping of the session block, @length bytes
 * @frame: an address on a stack, or 0; with WALK_CLEAR *@covered tells whether it lies within the
 *	frames that were walked; @covered may be NULL
 * Follows signal frames to the stack that was interrupted.
 */
enum stack_walk stack_walk(struct target *t, struct thread *th, const struct ss_control *block,
			   uint64_t length, const struct span *spans, uint32_t n, uint64_t frame,
			   bool *covered);

#endif
