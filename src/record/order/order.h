/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sorts the records of a batch by time.  The target is not trusted: after a record that is
 * incomplete, of an unknown type or later than now, the rest of its ring's segment is discarded.
 * The work is O(n log n) for any times.
 *
 * Records later than the batch's time are the rest, which order_rest() copies and the next
 * order_take() sorts together with the next batch.
 */
#ifndef RECORD_ORDER_ORDER_H
#define RECORD_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/record.h"
#include "lib/vec.h"
#include "record/queue.h"

#define ORDER_TAKEN UINT32_MAX

/* What a struct pending is. */
#define ORDER_RECORD 0u
/* The end of the block of @rec, an MPR_ALLOC or MPR_FREE record; the bits from ORDER_NUMBER on are an
 * index of order.earliest, unless it is ORDER_SHORT. */
#define ORDER_END 1u
/* MPR_ALLOC whose block ends in the same batch (the next one, if both are kept), or that end; the
 * bits from ORDER_NUMBER on are the block's number, which no other such block of the thread has that
 * is live at the same time. */
#define ORDER_SHORT   2u
#define ORDER_NUMBER  2 /* bits below the number */
#define ORDER_NUMBERS 256u

struct pending {
	uint64_t time;
	const uint8_t *rec; /* struct mpr_header and what follows */
	uint32_t slot;	    /* or ORDER_TAKEN: already processed, before its turn */
	uint32_t what;
};

/* A record that is kept for the next batch. */
struct kept {
	uint64_t time, earliest;
	uint32_t slot, what;
};

/* An address that has ends whose time is not known exactly. */
struct undated_end {
	uint64_t addr; /* 0: a free entry */
	uint32_t slot;
	bool shared; /* other threads have events of this address in the batch, too */
};

/* What a batch leaves to the next one.  All zero before the first batch. */
struct order_rest {
	uint8_t *data; /* the records, one after the other; owned, as is @kept */
	struct kept *kept;
	size_t n;
	uint64_t
	    until; /* time up to which the events of the batch and of those before are complete */
	bool any_taken; /* some of the records after that time were processed before their turn */
};

struct order {
	struct pending *events, *scratch;
	size_t n, cap;
	size_t complete;	  /* the events from this index on are the rest */
	uint64_t looks;		  /* events that order_postpone() may still examine in this batch */
	uint64_t until;		  /* time up to which the events are complete */
	struct order_rest before; /* of the last batch */
	VEC(uint64_t) earliest;	  /* times of the threads' events before ends of blocks */
	/* A bit for each hash of an address of which a record says that its block ended; the same for
	 * order_is_end() ends, which are in a hash table, too. */
	uint64_t *ended, *undated_bits;
	uint64_t ended_mask, ended_cap; /* number of bits - 1; allocated words of both */
	struct undated_end *undated;
	uint64_t undated_mask, undated_cap; /* number of entries - 1; allocated entries */
};

/**
 * order_take() - sort the records of @b and those of the rest into o->events[0 .. o->n)
 * @rest: of the batch before; is moved into @o, and all zero afterwards
 * @now: current ticks; no record can be later
 * The events point into @b and @o.
 *
 * Ends of blocks that are noted in the records of their allocations (formats/record.h) become
 * events of their own.  Their time is that of the thread's event before if everything up to the
 * thread's next event is in this batch.  Else they are kept, and come before that next event, or at
 * the time at which the reader saw the end, whichever is first.
 *
 * Return: the number of segments whose rest was discarded.
 */
uint64_t order_take(struct order *o, struct order_rest *rest, const struct batch *b, uint64_t now);

/* Return: whether @e is an end of a block with an entry in order.earliest. */
static inline bool order_is_end(const struct pending *e)
{
	return (e->what & (ORDER_END | ORDER_SHORT)) == ORDER_END;
}

/* Return: the time before which the block of @end, an order_is_end(), did not end. */
static inline uint64_t order_earliest(const struct order *o, const struct pending *end)
{
	return o->earliest.at[end->what >> ORDER_NUMBER];
}

/* Return: the address of the block that the event begins, 0 if none. */
uint64_t order_begun(const struct pending *e);
/* Return: the address of the block that the event ends, 0 if none. */
uint64_t order_ended(const struct pending *e);
/*
 * Return: false if nothing in this batch ends a block at @addr, but ORDER_SHORT ends; and if only the
 * thread of @slot has events of this address in the batch, other ends of that thread, which are in order
 * with its other events.  If threads pass blocks to each other, the record in which an end is noted can be
 * that of an older block at the address, and so can be those of the ends that follow.
 */
bool order_can_end(const struct order *o, uint64_t addr, uint32_t slot);

/**
 * order_postpone() - move the end o->events[@i] if it cannot be the next event of its address
 * The time of such an end is not known exactly, and the record that shows it can be that of an older
 * block: another thread can have freed that block, got the same address and passed it back.
 * @is_live: whether there is a block at its address.
 * Return: whether it was moved; then o->events[@i] is another event.
 */
bool order_postpone(struct order *o, size_t i, bool is_live);

/**
 * order_waiting_end() - find an end of a block at @addr that waits for a later batch
 * @i: index of the event before which the block must have ended
 * Return: the index of the first one that can have been before o->events[@i], or o->n.
 */
size_t order_waiting_end(const struct order *o, size_t i, uint64_t addr);

/**
 * order_rest() - copy the records of the rest that have not been processed
 * @rest: what it has is freed first
 * Without memory they are dropped.
 */
void order_rest(const struct order *o, struct order_rest *rest);
void order_rest_free(struct order_rest *rest);
/* Return: whether a record of the rest has been processed before its turn. */
bool order_rest_taken(const struct order *o);
void order_free(struct order *o);

#endif
