/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* malloc/free pairs of 16 to 512 bytes at a given stack depth: pairs THREADS DEPTH SECONDS.
 * Prints nanoseconds a pair and thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int depth;
static double seconds;
static double result[64];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

__attribute__((noinline)) static double loop(unsigned int x)
{
	double start = now(), end = start;
	long pairs = 0;

	while (end - start < seconds) {
		for (int i = 0; i < 10000; i++) {
			void *volatile p;

			x = x * 1664525 + 1013904223;
			p = malloc(16 + (x >> 8) % 496);
			free(p);
		}
		pairs += 10000;
		end = now();
	}
	return (end - start) * 1e9 / (double)pairs;
}

__attribute__((noinline)) static double descend(int d, unsigned int x)
{
	double r = d > 0 ? descend(d - 1, x) : loop(x);

	__asm__ volatile("" : "+m"(r));
	return r;
}

static void *run(void *arg)
{
	result[(long)arg] = descend(depth, (unsigned int)(long)arg + 1);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 1;
	double sum = 0;
	pthread_t th[64];

	depth = argc > 2 ? atoi(argv[2]) : 10;
	seconds = argc > 3 ? atof(argv[3]) : 1;
	for (long t = 0; t < threads; t++)
		pthread_create(&th[t], NULL, run, (void *)t);
	for (long t = 0; t < threads; t++) {
		pthread_join(th[t], NULL);
		sum += result[t];
	}
	printf("%.2f\n", sum / (double)threads);
	return 0;
}
