/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks of stopped threads: can a thread still return to given code? */
#ifndef INJECT_HOOKS_STACKWALK_H
#define INJECT_HOOKS_STACKWALK_H

#include <stdbool.h>
#include "attach/target.h"
#include "inject/block/lookup.h"

/**
 * stack_mentions() - does a word of the thread's registers or stack point into one of @spans?
 * Conservative: stale words count too.
 */
bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n);

/**
 * stack_interrupted() - can a signal handler of the thread have interrupted code in @spans?
 * Recognizes signal frames by their content, so code without unwind tables does not matter.
 * Return: whether there is such a frame, possibly one that is not in use any more.
 */
bool stack_interrupted(struct target *t, struct thread *th, const struct maps *maps,
		       const struct span *spans, uint32_t n);

/* Does a word of the stack near @frame, where a function was entered, point into one of @spans?
 * Return: false also if the memory is not readable. */
bool stack_frame_is_intact(struct target *t, uint64_t frame, const struct span *spans, uint32_t n);

enum stack_walk {
	WALK_CLEAR,  /* reached the outermost frame; no frame's pc is in a span */
	WALK_INSIDE, /* a frame's pc is in a span */
	WALK_LOST,   /* could not be completed; no frame's pc so far is in a span */
};

/**
 * stack_walk() - walk the stack by the session's tables
 * @block: memprof's mapping of the session block, @length bytes
 * @frame: an address on a stack, or 0
 * @covered: can be NULL; with WALK_CLEAR set to whether @frame is within the frames that were
 *	walked
 * Follows signal frames to the stack that was interrupted.
 */
enum stack_walk stack_walk(struct target *t, struct thread *th, const struct ss_control *block,
			   uint64_t length, const struct span *spans, uint32_t n, uint64_t frame,
			   bool *covered);

#endif
