/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocates faster than a recorder can write: at each line on stdin, THREADS threads make OPS
 * operations each.  An operation is a malloc, and a free of the block that is 64 operations old. 16
 * blocks of each round stay.  The line "deep" leaks 200 blocks with 200 different stacks instead,
 * the line "many" half a million blocks.  After each line prints the sums so far as JSON.  Ends at
 * the end of stdin.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64
#define KEPT   16

static long ops;
static struct truth {
	long mallocs, frees, bytes, live_bytes;
} sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void flood(long thread)
{
	unsigned int seed = (unsigned int)thread;
	struct truth t = {0};
	void *window[WINDOW] = {0};
	size_t size[WINDOW] = {0};

	for (long i = 0; i < ops; i++) {
		int k = (int)(i % WINDOW);

		if (window[k]) {
			free(window[k]);
			t.frees++;
		}
		seed = seed * 1103515245 + 12345;
		size[k] = 16 + (seed >> 16) % 200;
		window[k] = malloc(size[k]);
		memset(window[k], 1, size[k]);
		t.mallocs++;
		t.bytes += (long)size[k];
	}
	for (int k = 0; k < WINDOW; k++) {
		if (k < KEPT && !thread) {
			t.live_bytes += (long)size[k];
			continue;
		}
		t.frees += window[k] != NULL;
		free(window[k]);
	}
	pthread_mutex_lock(&lock);
	sum.mallocs += t.mallocs;
	sum.frees += t.frees;
	sum.bytes += t.bytes;
	sum.live_bytes += t.live_bytes;
	pthread_mutex_unlock(&lock);
}

void *kept[256];

/* Leaks one block at each depth, each from another stack. */
static __attribute__((noinline)) void deep(int depth)
{
	kept[depth] = malloc(100 + (size_t)depth);
	sum.mallocs++;
	sum.bytes += 100 + depth;
	sum.live_bytes += 100 + depth;
	if (depth > 1)
		deep(depth - 1);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

/* Leaks @n blocks. */
static void many(int n)
{
	for (int i = 0; i < n; i++) {
		size_t size = 16 + (size_t)i % 100;

		kept[i % 256] = malloc(size);
		sum.mallocs++;
		sum.bytes += (long)size;
		sum.live_bytes += (long)size;
	}
}

static pthread_barrier_t begin, end;

static void *worker(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		flood((long)(uintptr_t)arg);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	char line[64];
	static char out[4096];

	ops = argc > 2 ? atol(argv[2]) : 100000;
	setvbuf(stdout, out, _IOLBF, sizeof(out)); /* so that stdio does not allocate a buffer */
	pthread_barrier_init(&begin, NULL, (unsigned int)threads);
	pthread_barrier_init(&end, NULL, (unsigned int)threads);
	for (long i = 1; i < threads; i++) {
		pthread_t t;

		pthread_create(&t, NULL, worker, (void *)i);
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (*line == 'd') {
			deep(200);
		} else if (*line == 'm') {
			many(500000);
		} else {
			pthread_barrier_wait(&begin);
			flood(0);
			pthread_barrier_wait(&end);
		}
		printf("{\"mallocs\": %ld, \"frees\": %ld, \"bytes\": %ld, \"live_bytes\": %ld}\n",
		       sum.mallocs, sum.frees, sum.bytes, sum.live_bytes);
	}
	return 0;
}
