/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order/sorter.h"

#include "record/clock.h"

static void sort(struct sorter *s, struct sorted *to, struct order_rest *rest)
{
	to->discarded = order_take(&to->order, rest, to->batch, clock_ticks());
	if (s->thread.started)
		order_rest(&to->order, &s->rest);
}

static void take_batch(void *arg, unsigned int slot)
{
	struct sorter *s = arg;
	struct sorted *to = &s->slot[slot];

	to->batch = queue_get(s->queue);
	if (to->batch)
		sort(s, to, &s->rest);
}

void sorter_start(struct sorter *s, struct queue *q, bool thread)
{
	s->queue = q;
	if (thread && !handover_start(&s->thread, SORTER_SLOTS, take_batch, s)) {
		for (unsigned int i = 0; i < SORTER_SLOTS; i++)
			handover_give(&s->thread);
	}
}

/* Frees the batch @done, of which @rest gets what is left. */
static void finish_sorting(struct sorter *s, struct sorted *done, struct order_rest *rest)
{
	if (rest)
		order_rest(&done->order, rest);
	done->order.n = 0;
	queue_done(s->queue, done->batch);
	batch_free(done->batch);
	done->batch = NULL;
}

static struct sorted *next_alone(struct sorter *s)
{
	if (s->current)
		finish_sorting(s, s->current, &s->rest);
	take_batch(s, 0);
	return &s->slot[0];
}

/* The next batch was sorted as if no record of the rest were processed before its turn.  If one was, it is
 * sorted once more; until then the thread must not get another slot. */
static struct sorted *next_of_thread(struct sorter *s)
{
	struct sorted *done = s->current, *next = done == &s->slot[0] ? &s->slot[1] : &s->slot[0];
	bool again = done && order_rest_taken(&done->order);
	struct order_rest rest = {0};

	if (done)
		finish_sorting(s, done, again ? &rest : NULL);
	if (done && !again)
		handover_give(&s->thread);
	handover_wait_but(&s->thread, again ? 0 : 1);
	if (again && next->batch)
		sort(s, next, &rest);
	order_rest_free(&rest);
	if (again)
		handover_give(&s->thread);
	return next;
}

struct sorted *sorter_next(struct sorter *s)
{
	s->current = s->thread.started ? next_of_thread(s) : next_alone(s);
	if (!s->current->batch)
		s->current = NULL;
	return s->current;
}

void sorter_stop(struct sorter *s)
{
	handover_stop(&s->thread);
	for (unsigned int i = 0; i < SORTER_SLOTS; i++)
		order_free(&s->slot[i].order);
	order_rest_free(&s->rest);
}
