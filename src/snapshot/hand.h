/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A lock ("the hand") between two threads of memprof: one inspects a target, the other waits for
 * signals that end memprof.  The first holds the hand while it stops the target or changes anything
 * in it, so memprof never ends in between.  Everywhere else it ends at once.  For one target at a
 * time.
 */
#ifndef SNAPSHOT_HAND_H
#define SNAPSHOT_HAND_H

#include <stdbool.h>

/* Takes the hand: from here on the inspecting thread stops or changes the target. */
void hand_take(void);
/* Releases the hand.  @undo(@arg) is what must be done for the target if memprof ends before the
 * next hand_take(); NULL: nothing.  It runs concurrently with the inspecting thread and must not
 * touch what that uses.  Does not return if memprof is about to end. */
void hand_leave(void (*undo)(void *arg), void *arg);
/* Is memprof about to end?  To be checked where the hand is held for long. */
bool hand_wanted(void);

/* Called by the waiting thread before it ends memprof: waits until the hand is free, then calls
 * @undo. */
void hand_end(void);

#endif
