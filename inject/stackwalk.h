/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stopped threads: does any of them still have business in our code? */
#ifndef INJECT_STACKWALK_H
#define INJECT_STACKWALK_H

#include <stdbool.h>
#include "attach/target.h"
#include "inject/lookup.h"

/**
 * stack_mentions() - does a word of the thread's registers or stack point into one of @spans?
 * @strict: neither registers nor addresses equal to a span's start count
 * Conservative: stale words count too.
 */
bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n, bool strict);

enum stack_walk {
	WALK_CLEAR,  /* reached the outermost frame; no frame's pc is in a span */
	WALK_INSIDE, /* one is */
	WALK_LOST,   /* could not be completed; none so far */
};

/**
 * stack_walk() - walk the stack by the session's tables
 * @block: our mapping of the session block, @length bytes
 * Follows signal frames to the stack that was interrupted.
 */
enum stack_walk stack_walk(struct target *t, struct thread *th, const struct ss_control *block,
			   uint64_t length, const struct span *spans, uint32_t n);

#endif
