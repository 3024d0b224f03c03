/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two threads of memprof: one looks at a target, the other waits for the signals that end memprof.
 * The first holds the hand while it stops the target or changes anything in it; so the second never
 * ends memprof in between, and everywhere else it does at once, however deep in the analysis the
 * first one is.  One target at a time.
 */
#ifndef LEAKS_HAND_H
#define LEAKS_HAND_H

#include <stdbool.h>

/* For the thread that looks: from here on the target is stopped or changed. */
void hand_take(void);
/* That is over.  @undo(@arg) is what has to be done for the target should memprof end now, until
 * hand_take() is called again; it runs beside the thread that looks and must leave alone what that
 * one uses.  NULL: nothing.  Does not return when memprof is about to end. */
void hand_leave(void (*undo)(void *arg), void *arg);
/* Is memprof about to end?  Asked where the hand is held for long. */
bool hand_wanted(void);

/* For the thread that waits, before it ends memprof: waits until the hand is free, and undoes. */
void hand_end(void);

#endif
