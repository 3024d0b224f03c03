/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Prints "ready" and crashes when its stdin ends, in a function with a known stack, while other
 * threads allocate.  "segv": writes to address 0.  "free": frees a block twice, so that the C
 * library aborts inside free().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *allocate(void *arg)
{
	(void)arg;
	for (;;) {
		void *p = malloc(100);

		__asm__ volatile("" : : "r"(p) : "memory");
		free(p);
		usleep(1000);
	}
	return NULL;
}

static __attribute__((noinline)) void inner(const char *how)
{
	void *volatile p = malloc(24);
	size_t large = 100000;
	char c;

	while (read(0, &c, 1) > 0)
		;
	if (!strcmp(how, "segv"))
		*(volatile int *)NULL = 1;
	if (!strcmp(how, "malloc")) {
		char *volatile q = malloc(large);

		memset(q + large, 0xff, 32);
		q = malloc(large);
	}
#pragma GCC diagnostic ignored "-Wuse-after-free"
	free(p);
	free(p);
	__asm__ volatile("" : : : "memory"); /* not a tail call */
}

static __attribute__((noinline)) void outer(const char *how)
{
	inner(how);
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	pthread_t th;

	for (int i = 0; i < 4; i++) {
		if (pthread_create(&th, NULL, allocate, NULL))
			return 2;
	}
	puts("ready");
	fflush(stdout);
	outer(argc > 1 ? argv[1] : "segv");
	return 0;
}
