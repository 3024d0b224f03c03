/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * THREADS threads make OPS operations each, and pass their blocks on through a few mailboxes.  The
 * sizes are few, so that an address moves between the threads as fast as possible: a thread frees a
 * block that another one has allocated, allocates it again and passes it back.  Prints what it has
 * counted as JSON.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAILBOXES 8

enum { MALLOC, REALLOC, FREE, KINDS };

static void *mailbox[MAILBOXES];
static long ops;
static struct {
	long count[KINDS];
} truth[64] __attribute__((aligned(64)));

static size_t size_of(uint32_t x)
{
	return 24 + x % 3 * 40;
}

static char *new_block(long t, uint32_t x)
{
	char *p = malloc(size_of(x));

	truth[t].count[MALLOC]++;
	memset(p, (int)x, 16);
	__asm__ volatile("" : "+r"(p) : : "memory"); /* else the compiler removes whole blocks */
	return p;
}

static void end_block(long t, void *p)
{
	truth[t].count[FREE] += p != NULL;
	free(p);
}

static void one(long t, uint32_t x)
{
	char *p = new_block(t, x), *q;

	if (x >> 4 & 1)
		end_block(t, new_block(t, x >> 8));
	if ((x >> 5) % 8 == 0) {
		p = realloc(p, size_of(x >> 12));
		truth[t].count[REALLOC]++;
	}
	q = __atomic_exchange_n(&mailbox[(x >> 16) % MAILBOXES], p, __ATOMIC_ACQ_REL);
	end_block(t, q);
}

static void *run(void *arg)
{
	long t = (long)arg;
	uint32_t x = (uint32_t)t * 7919 + 1;

	for (long i = 0; i < ops; i++) {
		x = x * 1664525 + 1013904223;
		one(t, x);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 2, sum[KINDS] = {0}, live = 0;
	pthread_attr_t attr;
	pthread_t th[64];

	/* Small enough that glibc keeps them all when the threads end, with the blocks it has for
	 * them. */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	ops = argc > 2 ? atol(argv[2]) : 1000;
	if (threads < 1 || threads > 64)
		return 2;
	for (long t = 0; t < threads; t++)
		pthread_create(&th[t], &attr, run, (void *)t);
	for (long t = 0; t < threads; t++)
		pthread_join(th[t], NULL);
	for (long t = 0; t < threads; t++) {
		for (int k = 0; k < KINDS; k++)
			sum[k] += truth[t].count[k];
	}
	for (int i = 0; i < MAILBOXES; i++)
		live += mailbox[i] != NULL;
	printf("{\"malloc\": %ld, \"realloc\": %ld, \"free\": %ld, \"live_blocks\": %ld}\n",
	       sum[MALLOC], sum[REALLOC], sum[FREE], live);
	return 0;
}
