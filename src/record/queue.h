/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The queue of batches from the reader, which must never wait, to the aggregator.  Its hard ceiling
 * in bytes covers all threads: five sixteenths are reserved for the batch that the reader fills
 * and the arrays in which two batches are sorted (twice their size).  The last eighth of the rest is
 * reserved for records that end blocks.  When that is full, whole batches are dropped.
 * Dropped records are counted by kind.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/record.h"
#include "lib/vec.h"

#define QUEUE_BATCH 16 /* ceiling / QUEUE_BATCH: maximum bytes of records in a batch */

/* The records that one round of the reader removed from one ring. */
struct segment {
	/* @tid: from the slot, for a ring whose MPR_THREAD record was not seen. */
	uint32_t slot, tid;
	uint32_t nends; /* of batch.ends */
	uint64_t bytes;
	uint64_t position; /* of the first byte in the ring */
};

/* The end of a block whose MPR_ALLOC record was in an earlier batch; see mpr_ended(). */
struct end {
	struct mpr_free free; /* a complete MPR_FREE record, but its time is 0 */
	uint64_t position;    /* in the ring */
};

struct batch {
	struct batch *next;
	uint64_t until;	  /* ticks: events up to here are complete */
	uint64_t barrier; /* flushes up to this number are complete after this batch */
	uint32_t nsegments;
	bool after_loss; /* an earlier batch was dropped: MPR_THREAD records can be missing */
	uint64_t
	    read_at; /* ticks: ends of blocks up to here are in this batch or in earlier ones */
	uint64_t bytes, size;
	struct segment *segment;
	uint8_t *data;	      /* the segments' bytes; not NULL if there is a segment */
	VEC(struct end) ends; /* the segments' ends, one after the other */
};

/* Return: whether @b has no records and no ends of blocks. */
static inline bool batch_is_empty(const struct batch *b)
{
	return !b->bytes && !b->ends.n;
}

/* What was dropped. */
struct queue_drop {
	uint64_t batches; /* whole batches */
	uint64_t events[MPR_LOST_KINDS];
	uint64_t bytes;	    /* bytes of records */
	uint64_t requested; /* bytes requested by the dropped allocations */
};

struct queue_stats {
	struct queue_drop dropped;
	uint64_t bytes, peak_bytes, ceiling;
};

/* How much of the ceiling a batch can use. */
enum queue_admit {
	QUEUE_ALL,     /* seven eighths of the queue's part: a complete batch */
	QUEUE_FREES,   /* the whole part: a batch without its allocations */
	QUEUE_BARRIER, /* no limit: a batch without records, or one that must not be dropped */
};

struct queue;
/* @ceiling: bytes.  Return: an empty queue, or NULL when out of memory. */
struct queue *queue_new(uint64_t ceiling);
void queue_free(struct queue *q);
/* Appends @b and takes ownership of it.  Return: false if there is no room; then @b stays the
 * caller's. */
bool queue_put(struct queue *q, struct batch *b, enum queue_admit admit);
/* Adds @d to the counts of dropped records. */
void queue_count_drop(struct queue *q, const struct queue_drop *d);
/* Return: true if more than half of the ceiling is in use.  A reader that must not lose anything
 * then waits. */
bool queue_is_full(struct queue *q);
/* Waits for a batch.  Return: the batch; NULL once queue_end() was called and the queue is empty.
 */
struct batch *queue_get(struct queue *q);
/* Releases the room of a batch that has been processed.  The caller then frees it with
 * batch_free(). */
void queue_done(struct queue *q, const struct batch *b);
/* No batch is accepted from now on, and queue_get() does not wait any more. */
void queue_end(struct queue *q);
struct queue_stats queue_stats(struct queue *q);
void batch_free(struct batch *b);

#endif
