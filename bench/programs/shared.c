/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads share a table of 100,000 live blocks: shared THREADS SECONDS.  Each puts new blocks into
 * random entries and frees the blocks that were in them, most of which other threads allocated. */
#include <pthread.h>
#include "measure.h"

#define LIVE 100000

static void *live[LIVE];
static struct measure result[64];
static double seconds;

static long exchange(void *ctx)
{
	unsigned int *x = ctx;

	for (int i = 0; i < 1000; i++) {
		void *p;

		*x = *x * 1664525 + 1013904223;
		p = malloc(16 + (*x >> 8) % 497);
		free(__atomic_exchange_n(&live[*x % LIVE], p, __ATOMIC_ACQ_REL));
	}
	return 1000;
}

__attribute__((noinline)) static void descend(int depth, long thread)
{
	unsigned int x = (unsigned int)thread * 7919 + 1;

	if (depth > 0)
		descend(depth - 1, thread);
	else
		result[thread] = measure(exchange, &x, seconds);
	__asm__ volatile("");
}

static void *run(void *arg)
{
	descend(6, (long)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4;
	pthread_t th[64];

	seconds = argc > 2 ? atof(argv[2]) : 1;
	if (threads < 1 || threads > 64)
		return 2;
	for (int i = 0; i < LIVE; i++)
		live[i] = malloc(16 + (size_t)i % 497);
	for (long t = 0; t < threads; t++)
		pthread_create(&th[t], NULL, run, (void *)t);
	for (long t = 0; t < threads; t++)
		pthread_join(th[t], NULL);
	print_measures(result, (int)threads);
	return 0;
}
