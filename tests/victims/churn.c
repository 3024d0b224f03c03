/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * churn THREADS [PAUSE_US]: each thread replaces its blocks in a loop and sleeps PAUSE_US after
 * each, unless it is 0.  Prints "ok" and ends at SIGTERM.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 32

static volatile sig_atomic_t stop;
static useconds_t pause_us;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void *run(void *arg)
{
	uint32_t x = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
	unsigned char *block[BLOCKS] = {0};
	size_t size[BLOCKS] = {0};

	while (!stop) {
		uint32_t i = (x = x * 1664525 + 1013904223) >> 16 & (BLOCKS - 1);

		if (block[i] && (block[i][0] != i || block[i][size[i] - 1] != i)) {
			dprintf(2, "wrong byte\n");
			_exit(1);
		}
		free(block[i]);
		size[i] = 1 + (x >> 20) % 1000;
		block[i] = malloc(size[i]);
		if (!block[i])
			_exit(3);
		memset(block[i], (int)i, size[i]);
		if (pause_us)
			usleep(pause_us);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread[256];

	if (n < 1 || n > 256)
		return 2;
	pause_us = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
	signal(SIGTERM, on_term);
	for (long i = 1; i < n; i++) {
		if (pthread_create(&thread[i], NULL, run, (void *)i))
			return 3;
	}
	run(NULL);
	for (long i = 1; i < n; i++)
		pthread_join(thread[i], NULL);
	puts("ok");
	return 0;
}
