/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Restores the carrier if memprof is killed while the carrier's registers are changed.  A signal
 * frame is written below the carrier's stack.  The return instruction after the injected system
 * call leads to rt_sigreturn, which restores the carrier from that frame.  No byte of text is
 * written.
 */
#ifndef ATTACH_EMERGENCY_H
#define ATTACH_EMERGENCY_H

#include "attach/target.h"
#include "lib/check.h"

/**
 * emergency_find() - find the code sequences that are needed in the target's text
 * The result is kept in @t and only verified by later calls, so a call before the target is stopped
 * shortens the stop.
 * Return: 0, -ENOENT, or another negative errno if the mappings cannot be read.
 */
__must_check int emergency_find(struct target *t);

/* Is there room for the frame between the thread's stack pointer and the start of the mapping? */
bool emergency_room(struct target *t, const struct maps *maps, struct thread *th);

/**
 * emergency_build() - write the frame for @r->carrier below its stack (signal mask: @r->sigmask)
 * Saves the bytes that it overwrites in @r->scratch; emergency_drop() writes them back after the
 * carrier's registers have been restored.
 * Return: 0 or a negative errno.
 */
__must_check int emergency_build(struct remote *r);
__must_check int emergency_drop(struct remote *r);

#endif
