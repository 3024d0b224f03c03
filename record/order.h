/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The records of one batch in order of time.  Their producer is somebody else's process: a record
 * that is not whole or not of a known type, or that claims to be of the future, ends what is
 * believed of its ring in this batch.  Work is at most n log n whatever the times say.
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
	uint32_t slot;	    /* or ORDER_TAKEN: taken up before its turn */
};

struct order {
	struct pending *events, *scratch;
	size_t n, cap;
	uint8_t *carry; /* records later than their batch's time */
	uint32_t *carry_slot;
	size_t ncarry, cap_carry;
};

/**
 * order_take() - records of @b and those kept from earlier ones, sorted, in o->events[0 .. o->n)
 * @now: ticks; no record can be later
 * They point into @b and @o until order_keep().
 * Return: how many times a ring was given up.
 */
uint64_t order_take(struct order *o, const struct batch *b, uint64_t now);
/* Keeps what is left of o->events[@from .. o->n) for the next order_take(). */
void order_keep(struct order *o, size_t from);
void order_free(struct order *o);

#endif
