/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the reader took from the rings, looked at without decoding it: are the records whole, what
 * kinds are they, and, under overload, which of them to keep.
 */
#ifndef RECORD_WIRE_H
#define RECORD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/record.h"
#include "record/queue.h"

/* Is a whole, known record at @p?  @left: bytes from there to the segment's end. */
bool wire_valid(const uint8_t *p, uint64_t left);

/* Counts the records of @b into @out. */
void wire_census(const struct batch *b, struct queue_drop *out);

/**
 * wire_thin() - take out of @b what brings blocks, keep what ends them
 *
 * A lost free is a block that seems to leak for ever; a lost allocation is only missing.  Kept
 * are frees, reallocs, unmappings and the threads' names.  What was taken out is counted into
 * @out; its batches is 0.
 */
void wire_thin(struct batch *b, struct queue_drop *out);

/* Bytes of @p[0, @bytes) whose records are not later than @until, up to the first that is. */
uint64_t wire_up_to(const uint8_t *p, uint64_t bytes, uint64_t until);

#endif
