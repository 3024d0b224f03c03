/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What saves a thread whose registers are borrowed if memprof is killed at that moment: a frame
 * below its stack from which rt_sigreturn puts it back, reached by the return behind the system
 * call that it makes for us.  No byte of text is written.
 */
#ifndef ATTACH_EMERGENCY_H
#define ATTACH_EMERGENCY_H

#include "attach/target.h"
#include "lib/check.h"

/**
 * emergency_find() - find the code that is needed, in the target's text; kept in @t and looked at
 *	again, so that calling it before the target is stopped makes the stop shorter
 * Return: 0, or -ENOENT.
 */
__must_check int emergency_find(struct target *t);

/* Has this thread room for the frame between its stack pointer and the mapping's start? */
bool emergency_room(struct target *t, const struct maps *maps, struct thread *th);

/**
 * emergency_build() - write the frame for @r->carrier below its stack (signal mask: @r->sigmask)
 * Fills @r's scratch, which emergency_drop() puts back when the thread has its registers again.
 * Return: 0 or a negative errno.
 */
__must_check int emergency_build(struct remote *r);
__must_check int emergency_drop(struct remote *r);

#endif
