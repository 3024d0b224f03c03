/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two threads, "keeper" and "other", run until SIGTERM.  In each round a thread allocates three
 * blocks (of 100 bytes in "keeper", 200 in "other") and frees them.  In every tenth round it leaves
 * the third one in a shared variable, from which either thread frees it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t running = 1;
static void *handed_over;

static void stop(int sig)
{
	(void)sig;
	running = 0;
}

static void *work(void *arg)
{
	uintptr_t size = (uintptr_t)arg;

	pthread_setname_np(pthread_self(), size == 100 ? "keeper" : "other");
	for (long round = 0; running; round++) {
		void *a = malloc(size), *b = malloc(size), *c = malloc(size);

		free(a);
		free(b);
		if (round % 10)
			free(c);
		else
			free(__atomic_exchange_n(&handed_over, c, __ATOMIC_ACQ_REL));
		usleep(200);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	signal(SIGTERM, stop);
	pthread_create(&t[0], NULL, work, (void *)100);
	pthread_create(&t[1], NULL, work, (void *)200);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	puts("ok");
	return 0;
}
