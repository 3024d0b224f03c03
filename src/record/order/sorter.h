/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Takes the batches from the queue and sorts their records (order.h), with a thread of its own if
 * wanted: it then sorts the next batch while its owner processes one.
 */
#ifndef RECORD_ORDER_SORTER_H
#define RECORD_ORDER_SORTER_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/handover.h"
#include "record/order/order.h"
#include "record/queue.h"

#define SORTER_SLOTS 2u

/* A batch and its records in order. */
struct sorted {
	struct batch *batch; /* NULL: the queue has ended */
	struct order order;
	uint64_t discarded; /* segments whose rest was discarded */
};

/* Zeroed before sorter_start(). */
struct sorter {
	struct queue *queue;
	struct sorted slot[SORTER_SLOTS]; /* without a thread, only the first one */
	struct order_rest rest;		  /* of the batch that was sorted last */
	struct handover thread;
	struct sorted *current; /* the owner's */
};

/* Begins to take batches from @q.  @thread: with a thread, unless none can be created.  @s must stay
 * where it is. */
void sorter_start(struct sorter *s, struct queue *q, bool thread);
/* Waits for the next batch.  The batch before is freed, and its room in the queue released.
 * Return: the batch, until the next call; NULL once queue_end() was called and the queue is empty. */
struct sorted *sorter_next(struct sorter *s);
/* Ends the thread.  The queue must have ended.  Does nothing if @s is zeroed. */
void sorter_stop(struct sorter *s);

#endif
