/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * THREADS threads malloc and free 16 to 515 bytes as fast as they can: more events than a recorder
 * can follow.  At each line "leak N" on stdin the first thread leaks N blocks of 777 bytes, one
 * after each 300 of its other calls; "grow N" makes it grow N buffers by realloc and keep them;
 * "calm" makes the threads do nothing else until "churn".  After each line prints the sums so far as JSON.
 * Ends at the end of stdin.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAK  777
#define EVERY 300

static long wanted_leaks, wanted_grown, mallocs, live_blocks, live_bytes;
static int calm;

static __attribute__((noinline)) void leak_one(void)
{
	char *p = malloc(LEAK);

	memset(p, 1, LEAK);
	__asm__ volatile("" : : "r"(p) : "memory");
	live_blocks++;
	live_bytes += LEAK;
	__atomic_fetch_sub(&wanted_leaks, 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void grow_one(void)
{
	char *p = malloc(100);

	for (size_t n = 200; n <= 6400; n *= 2)
		p = realloc(p, n);
	memset(p, 1, 100);
	__asm__ volatile("" : : "r"(p) : "memory");
	live_blocks++;
	live_bytes += 6400;
	__atomic_fetch_sub(&wanted_grown, 1, __ATOMIC_RELEASE);
}

static void serve(void)
{
	if (__atomic_load_n(&wanted_leaks, __ATOMIC_ACQUIRE))
		leak_one();
	if (__atomic_load_n(&wanted_grown, __ATOMIC_ACQUIRE))
		grow_one();
}

static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(size_t)arg, n = 0;
	void *kept[16] = {0};

	for (;;) {
		unsigned int k = seed >> 8 & 15;

		while (__atomic_load_n(&calm, __ATOMIC_ACQUIRE)) {
			if (!arg)
				serve();
			usleep(1000);
		}
		seed = seed * 1103515245 + 12345;
		free(kept[k]);
		kept[k] = malloc(16 + (seed >> 16) % 500);
		__atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
		if (!arg && ++n % EVERY == 0)
			serve();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4, n;
	char line[64];
	pthread_t t;

	for (long i = 0; i < threads; i++)
		pthread_create(&t, NULL, churn, (void *)i);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "leak %ld", &n) == 1)
			__atomic_store_n(&wanted_leaks, n, __ATOMIC_RELEASE);
		else if (sscanf(line, "grow %ld", &n) == 1)
			__atomic_store_n(&wanted_grown, n, __ATOMIC_RELEASE);
		else
			__atomic_store_n(&calm, !strcmp(line, "calm\n"), __ATOMIC_RELEASE);
		while (__atomic_load_n(&wanted_leaks, __ATOMIC_ACQUIRE) ||
		       __atomic_load_n(&wanted_grown, __ATOMIC_ACQUIRE))
			usleep(1000);
		printf("{\"mallocs\": %ld, \"live_blocks\": %ld, \"live_bytes\": %ld}\n",
		       __atomic_load_n(&mallocs, __ATOMIC_RELAXED), live_blocks, live_bytes);
	}
	return 0;
}
