/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/queue.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct batch *first, **last;
	struct queue_stats stats;
	bool ended;
};

struct queue *queue_new(uint64_t ceiling)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	q->last = &q->first;
	q->stats.ceiling = ceiling;
	return q;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	free(b->segment);
	free(b->data);
	vec_free(&b->ends);
	free(b);
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	while (q->first) {
		struct batch *b = q->first;

		q->first = b->next;
		batch_free(b);
	}
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->filled);
	free(q);
}

static uint64_t limit(const struct queue *q, enum queue_admit admit)
{
	uint64_t part = q->stats.ceiling - 5 * (q->stats.ceiling / QUEUE_BATCH);

	switch (admit) {
	case QUEUE_ALL:
		return part - part / 8;
	case QUEUE_FREES:
		return part;
	default:
		return UINT64_MAX;
	}
}

bool queue_put(struct queue *q, struct batch *b, enum queue_admit admit)
{
	bool taken;

	pthread_mutex_lock(&q->lock);
	taken = !q->ended && q->stats.bytes + b->size <= limit(q, admit);
	if (taken) {
		b->next = NULL;
		*q->last = b;
		q->last = &b->next;
		q->stats.bytes += b->size;
		if (q->stats.bytes > q->stats.peak_bytes)
			q->stats.peak_bytes = q->stats.bytes;
		pthread_cond_signal(&q->filled);
	}
	pthread_mutex_unlock(&q->lock);
	return taken;
}

void queue_count_drop(struct queue *q, const struct queue_drop *d)
{
	pthread_mutex_lock(&q->lock);
	q->stats.dropped.batches += d->batches;
	for (int i = 0; i < MPR_LOST_KINDS; i++)
		q->stats.dropped.events[i] += d->events[i];
	q->stats.dropped.bytes += d->bytes;
	q->stats.dropped.requested += d->requested;
	pthread_mutex_unlock(&q->lock);
}

bool queue_is_full(struct queue *q)
{
	bool full;

	pthread_mutex_lock(&q->lock);
	full = q->stats.bytes > q->stats.ceiling / 2;
	pthread_mutex_unlock(&q->lock);
	return full;
}

struct batch *queue_get(struct queue *q)
{
	struct batch *b;

	pthread_mutex_lock(&q->lock);
	while (!q->first && !q->ended)
		pthread_cond_wait(&q->filled, &q->lock);
	b = q->first;
	if (b) {
		q->first = b->next;
		if (!q->first)
			q->last = &q->first;
	}
	pthread_mutex_unlock(&q->lock);
	return b;
}

void queue_done(struct queue *q, const struct batch *b)
{
	pthread_mutex_lock(&q->lock);
	q->stats.bytes -= b->size;
	pthread_mutex_unlock(&q->lock);
}

void queue_end(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->ended = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

struct queue_stats queue_stats(struct queue *q)
{
	struct queue_stats s;

	pthread_mutex_lock(&q->lock);
	s = q->stats;
	pthread_mutex_unlock(&q->lock);
	return s;
}
