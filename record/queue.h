/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Between the reader, which must never wait, and the aggregator: batches in order, with a hard
 * ceiling in bytes, which is that of both threads: three sixteenths are for the batch that the
 * reader fills and the arrays in which the aggregator sorts one (twice its size).  The last eighth
 * of the rest is kept for what ends blocks; over it whole batches are dropped.  What was dropped is
 * counted by kind.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/record.h"

#define QUEUE_BATCH 16 /* the ceiling is so many times the most bytes of records in a batch */

/* What one round of the reader took from one ring. */
struct segment {
	uint32_t slot, tid; /* tid: at the segment's start or later, for rings that never said */
	uint64_t bytes;
};

struct batch {
	struct batch *next;
	uint64_t until;	  /* ticks: events up to here are complete */
	uint64_t barrier; /* 0, or whoever waits for this number gets an answer after this batch */
	uint32_t nsegments;
	bool after_loss; /* a batch before it was dropped: the threads' names may be missing */
	uint64_t bytes, size;
	struct segment *segment;
	uint8_t *data; /* the segments' bytes, one behind the other */
};

/* What did not get in. */
struct queue_drop {
	uint64_t batches; /* whole ones */
	uint64_t events[MPR_LOST_KINDS];
	uint64_t bytes;	    /* of records */
	uint64_t requested; /* bytes that the dropped allocations asked for */
};

struct queue_stats {
	struct queue_drop dropped;
	uint64_t bytes, peak_bytes, ceiling;
};

/* What a batch may use of the ceiling. */
enum queue_admit {
	QUEUE_ALL,     /* seven eighths of the queue's part: everything there was */
	QUEUE_FREES,   /* all of it: allocations were taken out */
	QUEUE_BARRIER, /* more: it holds no record */
};

struct queue;
struct queue *queue_new(uint64_t ceiling);
void queue_free(struct queue *q);
/* Takes ownership.  Return: false when there is no room: @b is still the caller's. */
bool queue_put(struct queue *q, struct batch *b, enum queue_admit admit);
void queue_count_drop(struct queue *q, const struct queue_drop *d);
/* Is less than half of the ceiling free?  A reader that may not lose anything waits then. */
bool queue_is_full(struct queue *q);
/* Waits for a batch.  Return: NULL once queue_end() was called and all are taken. */
struct batch *queue_get(struct queue *q);
/* The batch has been processed (then the caller frees it by batch_free()). */
void queue_done(struct queue *q, const struct batch *b);
void queue_end(struct queue *q);
struct queue_stats queue_stats(struct queue *q);
void batch_free(struct batch *b);

#endif
