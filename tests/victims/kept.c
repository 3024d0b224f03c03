/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Usage: kept PHASES.  In each of PHASES phases, each of the functions keep_* below allocates 1000
 * blocks of 100 bytes that are never freed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS	1000
#define THREADS 100

/* Volatile, so that the compiler cannot remove an allocation. */
static void *volatile last;

static __attribute__((noinline)) void keep(int n)
{
	for (int i = 0; i < n; i++)
		last = malloc(100);
}

static __attribute__((noinline)) void *keep_in_one_thread(void *arg)
{
	keep(BLOCKS);
	return arg;
}

/* Each thread allocates so little that it most likely ends without a sample. */
static __attribute__((noinline)) void *keep_in_many_threads(void *arg)
{
	keep(BLOCKS / THREADS);
	return arg;
}

static __attribute__((noinline)) void keep_grown(void)
{
	for (int i = 0; i < BLOCKS; i++)
		last = realloc(realloc(malloc(30), 70), 100);
}

static __attribute__((noinline)) void keep_of_many(void)
{
	void *block[BLOCKS];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < BLOCKS; i++)
			block[i] = malloc(100);
		for (int i = 0; i < BLOCKS && round < 4; i++)
			free(block[i]);
	}
}

static void threads(int n, void *(*body)(void *))
{
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, body, NULL) || pthread_join(thread, NULL))
			abort();
	}
}

int main(int argc, char **argv)
{
	int phases = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < phases; i++) {
		threads(1, keep_in_one_thread);
		threads(THREADS, keep_in_many_threads);
		keep_grown();
		keep_of_many();
	}
	_exit(0);
}
