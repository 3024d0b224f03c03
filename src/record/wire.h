/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Operations on undecoded records from the rings: validate them, count them by kind, and under
 * overload remove the less important ones.
 */
#ifndef RECORD_WIRE_H
#define RECORD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/record.h"
#include "record/queue.h"

/* Return: whether a complete record of a known type is at @p.  @left: bytes from @p to the
 * segment's end. */
bool wire_valid(const uint8_t *p, uint64_t left);

/* Adds the records of @b to the counts in @out, and one batch. */
void wire_census(const struct batch *b, struct queue_drop *out);

/**
 * wire_drop_blocks() - remove the records that add blocks from @b, keep those that end blocks
 *
 * An allocation whose record has the end of the block is removed with its end.  A lost free makes a
 * block appear leaked for ever; a lost allocation is only missing.  Frees, reallocs, unmappings and
 * MPR_THREAD records are kept.  The removed records are added to the counts in @out, whose batches
 * is not changed.
 */
void wire_drop_blocks(struct batch *b, struct queue_drop *out);

/* Return: the bytes of the records in @p[0, @bytes) before the first one later than @until; @bytes
 * if there is an invalid record before it. */
uint64_t wire_up_to(const uint8_t *p, uint64_t bytes, uint64_t until);

#endif
