/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/put_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (256u << 10)

/* Followed by a struct mp_event, or by the addresses of a stack. */
struct put {
	uint32_t is_stack, id, flags, n;
};

static void work(void *arg, unsigned int slot)
{
	struct put_queue *q = arg;
	const uint8_t *p = q->slot[slot].data, *end = p + q->slot[slot].n;

	while (p < end) {
		const struct put *put = (const void *)p;
		const void *what = put + 1;

		if (put->is_stack)
			q->ops->stack(q->arg, put->id, put->flags, what, put->n);
		else
			q->ops->event(q->arg, what);
		p += sizeof(*put) +
		     (put->is_stack ? put->n * sizeof(uint64_t) : sizeof(struct mp_event));
	}
	q->slot[slot].n = 0;
}

int put_queue_start(struct put_queue *q, const struct put_ops *ops, void *arg)
{
	int ret = -ENOMEM;

	*q = (struct put_queue){.ops = ops, .arg = arg};
	for (unsigned int i = 0; i < PUT_SLOTS; i++)
		q->slot[i].data = malloc(SLOT_BYTES);
	if (q->slot[0].data && q->slot[1].data)
		ret = handover_start(&q->thread, PUT_SLOTS, work, q);
	if (ret)
		put_queue_stop(q);
	return ret;
}

static void give(struct put_queue *q)
{
	handover_give(&q->thread);
	q->current = handover_slot(&q->thread);
}

/* Return: @n bytes for what follows @put. */
static void *append_put(struct put_queue *q, const struct put *put, size_t n)
{
	uint8_t *to;

	if (q->slot[q->current].n + sizeof(*put) + n > SLOT_BYTES)
		give(q);
	to = q->slot[q->current].data + q->slot[q->current].n;
	memcpy(to, put, sizeof(*put));
	q->slot[q->current].n += sizeof(*put) + n;
	return to + sizeof(*put);
}

void put_queue_event(struct put_queue *q, const struct mp_event *ev)
{
	memcpy(append_put(q, &(struct put){0}, sizeof(*ev)), ev, sizeof(*ev));
}

void put_queue_stack(struct put_queue *q, uint32_t id, uint32_t flags, const uint64_t *pc,
		     uint32_t n)
{
	memcpy(append_put(q, &(struct put){1, id, flags, n}, n * sizeof(*pc)), pc, n * sizeof(*pc));
}

void put_queue_wait(struct put_queue *q)
{
	if (!q->thread.started)
		return;
	if (q->slot[q->current].n)
		give(q);
	handover_wait(&q->thread);
}

void put_queue_stop(struct put_queue *q)
{
	put_queue_wait(q);
	handover_stop(&q->thread);
	for (unsigned int i = 0; i < PUT_SLOTS; i++)
		free(q->slot[i].data);
	*q = (struct put_queue){0};
}
