/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events and stacks on their way to a thread that encodes and writes them, in order. */
#ifndef FORMATS_PUT_QUEUE_H
#define FORMATS_PUT_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include "formats/event.h"
#include "lib/handover.h"

#define PUT_SLOTS 2u

/* What the thread does with what was put. */
struct put_ops {
	void (*event)(void *arg, const struct mp_event *ev);
	void (*stack)(void *arg, uint32_t id, uint32_t flags, const uint64_t *pc, uint32_t n);
};

/* Zeroed: not started.  Must stay where it is. */
struct put_queue {
	const struct put_ops *ops;
	void *arg;
	struct handover thread;
	struct {
		uint8_t *data;
		size_t n;
	} slot[PUT_SLOTS];
	unsigned int current; /* the slot that is being filled */
};

/* Starts the thread.  @ops: constant; called with @arg.  Return: 0, or a negative errno, @q then zeroed. */
int put_queue_start(struct put_queue *q, const struct put_ops *ops, void *arg);
/* Each appends one; what is passed is copied.  @n: at most 1024. */
void put_queue_event(struct put_queue *q, const struct mp_event *ev);
void put_queue_stack(struct put_queue *q, uint32_t id, uint32_t flags, const uint64_t *pc,
		     uint32_t n);
/* Waits until all that was put is done.  Does nothing if @q was not started, as put_queue_stop(). */
void put_queue_wait(struct put_queue *q);
/* As put_queue_wait(), then ends the thread. */
void put_queue_stop(struct put_queue *q);

#endif
