/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/handover.h"

#include "lib/privileges.h"
#include "lib/thread.h"

static void *run_thread(void *arg)
{
	struct handover *h = arg;

	privileges_keep(PRIVILEGES_NONE);
	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (h->done == h->given && !h->over)
			pthread_cond_wait(&h->changed, &h->lock);
		if (h->done == h->given)
			break;
		pthread_mutex_unlock(&h->lock);
		h->work(h->arg, (unsigned int)(h->done % h->slots));
		pthread_mutex_lock(&h->lock);
		h->done++;
		pthread_cond_signal(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

int handover_start(struct handover *h, unsigned int slots,
		   void (*work)(void *arg, unsigned int slot), void *arg)
{
	int ret;

	*h = (struct handover){.work = work, .arg = arg, .slots = slots, .started = true};
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	ret = thread_start(&h->thread, run_thread, h);
	if (ret)
		*h = (struct handover){0};
	return ret;
}

unsigned int handover_slot(struct handover *h)
{
	handover_wait_but(h, h->slots - 1);
	return (unsigned int)(h->given % h->slots);
}

void handover_give(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	h->given++;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

void handover_wait_but(struct handover *h, unsigned int left)
{
	pthread_mutex_lock(&h->lock);
	while (h->given - h->done > left)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void handover_wait(struct handover *h)
{
	handover_wait_but(h, 0);
}

void handover_stop(struct handover *h)
{
	if (!h->started)
		return;
	pthread_mutex_lock(&h->lock);
	h->over = true;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	*h = (struct handover){0};
}
