/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Between the reader, which must never wait, and the aggregator: batches in order, with a hard
 * ceiling in bytes.  Over it whole batches are dropped and counted.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one round of the reader took from one ring. */
struct segment {
	uint32_t slot, tid; /* tid: at the segment's end, for rings that never said */
	uint64_t bytes;
};

struct batch {
	struct batch *next;
	uint64_t until; /* ticks: events up to here are complete */
	uint64_t order; /* for flush */
	uint32_t nsegments;
	uint64_t bytes, size;
	struct segment *segment;
	uint8_t *data; /* the segments' bytes, one behind the other */
};

struct queue_stats {
	uint64_t dropped_batches, dropped_events, dropped_bytes, peak_bytes;
};

struct queue;
struct queue *queue_new(uint64_t ceiling);
void queue_free(struct queue *q);
/* Takes ownership.  Return: false when the ceiling was hit: @b was counted and freed. */
bool queue_put(struct queue *q, struct batch *b, uint64_t events);
/* Is less than half of the ceiling free?  A reader that may not lose anything waits then. */
bool queue_is_full(struct queue *q);
/* Waits for a batch.  Return: NULL once queue_end() was called and all are taken. */
struct batch *queue_get(struct queue *q);
/* The batch has been processed (then the caller frees it by batch_free()). */
void queue_done(struct queue *q, const struct batch *b);
/* An ordered barrier: returns true when everything put before this call was processed, false when
 * the queue ended first. */
bool queue_flush(struct queue *q);
void queue_end(struct queue *q);
struct queue_stats queue_stats(struct queue *q);
void batch_free(struct batch *b);

#endif
