/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recent records of a ring, those behind the head in which the agent still notes the ends of
 * their blocks (formats/record.h).  The reader reads these records like all others, but does not
 * release them, and looks at those of blocks that had not ended again in later rounds.  Which these
 * are is in the thread's slot, so that the next recorder of the session can continue.
 */
#ifndef RECORD_ORDER_RECENT_H
#define RECORD_ORDER_RECENT_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "record/queue.h"
#include "record/ring.h"

/* Continues where the slot's last reader stopped: sets r->at and r->keep. */
void recent_continue(const struct ss_thread *t, struct ring *r);

/**
 * recent_ends() - find the blocks that ended since their records were read
 * @to: position before which blocks must have ended.  The next calls find those that ended later.
 * Appends them to b->ends, in order of position.  Return: their number.  To be called before
 * recent_read().
 */
uint32_t recent_ends(struct ss_thread *t, const struct ring *r, uint64_t to, struct batch *b);

/* Return: the number of blocks that recent_ends() would find for any @to. */
uint32_t recent_waiting(const struct ss_thread *t, const struct ring *r);

/**
 * recent_read() - note which of the records @copy[0, @n), read from r->at, may show an end later
 * @to: as for recent_ends().  Removes later ends from the copy, so that recent_ends() finds them.
 */
void recent_read(struct ss_thread *t, const struct ring *r, uint64_t to, uint8_t *copy, uint64_t n);

/* As recent_read(), of bytes that are dropped and cannot be looked at: later ends of their blocks are
 * not found. */
void recent_drop(struct ss_thread *t, const struct ring *r, uint64_t n);

#endif
