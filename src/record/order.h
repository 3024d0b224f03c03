/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sorts the records of a batch by time.  The target is not trusted: after a record that is
 * incomplete, of an unknown type or later than now, the rest of its ring's segment is discarded.
 * The work is O(n log n) for any times.
 */
#ifndef RECORD_ORDER_H
#define RECORD_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include "formats/record.h"
#include "record/queue.h"

#define ORDER_TAKEN UINT32_MAX

struct pending {
	uint64_t time;
	const uint8_t *rec; /* struct mpr_header and what follows */
	uint32_t slot;	    /* or ORDER_TAKEN: already processed, before its turn */
};

struct order {
	struct pending *events, *scratch;
	size_t n, cap;
	uint8_t *carry; /* records later than their batch's time */
	uint32_t *carry_slot;
	size_t ncarry, cap_carry;
};

/**
 * order_take() - sort the records of @b and those kept from earlier batches into o->events[0 ..
 * o->n)
 * @now: current ticks; no record can be later
 * They point into @b and @o until order_keep().
 * Return: the number of segments whose rest was discarded.
 */
uint64_t order_take(struct order *o, const struct batch *b, uint64_t now);
/* Keeps the unprocessed records of o->events[@from .. o->n) for the next order_take(). */
void order_keep(struct order *o, size_t from);
void order_free(struct order *o);

#endif
