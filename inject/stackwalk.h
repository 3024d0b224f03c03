/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stopped threads: does any of them still have business in our code? */
#ifndef INJECT_STACKWALK_H
#define INJECT_STACKWALK_H

#include <stdbool.h>
#include "attach/target.h"
#include "formats/session.h"

struct span {
	uint64_t start, end;
};

/**
 * stack_mentions() - does a word of the thread's registers or stack point into one of @spans?
 * @strict: addresses equal to a span's start do not count
 * Conservative: stale words count too.
 */
bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n, bool strict);

/**
 * stack_walk_clear() - walk the stack by the session's tables
 * @block: our mapping of the session block, @length bytes
 * Return: true if the walk reached the outermost frame and no frame's pc is in @spans; false if
 * one is, or if the walk could not be completed.
 */
bool stack_walk_clear(struct target *t, struct thread *th, const struct ss_control *block,
		      uint64_t length, const struct span *spans, uint32_t n);

#endif
