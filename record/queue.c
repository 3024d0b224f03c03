/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/queue.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, processed;
	struct batch *first, **last;
	uint64_t bytes, ceiling, put, done;
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
	pthread_cond_init(&q->processed, NULL);
	q->last = &q->first;
	q->ceiling = ceiling;
	return q;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	free(b->segment);
	free(b->data);
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
	pthread_cond_destroy(&q->processed);
	free(q);
}

bool queue_put(struct queue *q, struct batch *b, uint64_t events)
{
	bool taken;

	pthread_mutex_lock(&q->lock);
	taken = q->bytes + b->size <= q->ceiling && !q->ended;
	if (taken) {
		b->next = NULL;
		b->order = ++q->put;
		*q->last = b;
		q->last = &b->next;
		q->bytes += b->size;
		if (q->bytes > q->stats.peak_bytes)
			q->stats.peak_bytes = q->bytes;
		pthread_cond_signal(&q->filled);
	} else {
		q->stats.dropped_batches++;
		q->stats.dropped_events += events;
		q->stats.dropped_bytes += b->bytes;
	}
	pthread_mutex_unlock(&q->lock);
	if (!taken)
		batch_free(b);
	return taken;
}

bool queue_is_full(struct queue *q)
{
	bool full;

	pthread_mutex_lock(&q->lock);
	full = q->bytes > q->ceiling / 2;
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
	q->bytes -= b->size;
	q->done = b->order;
	pthread_cond_broadcast(&q->processed);
	pthread_mutex_unlock(&q->lock);
}

bool queue_flush(struct queue *q)
{
	uint64_t until;
	bool reached;

	pthread_mutex_lock(&q->lock);
	until = q->put;
	while (q->done < until && !q->ended)
		pthread_cond_wait(&q->processed, &q->lock);
	reached = q->done >= until;
	pthread_mutex_unlock(&q->lock);
	return reached;
}

void queue_end(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->ended = true;
	pthread_cond_broadcast(&q->filled);
	pthread_cond_broadcast(&q->processed);
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
