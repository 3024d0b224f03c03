/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocates and frees blocks of fastbin sizes in bursts.  Each burst ends when a byte is read: then
 * it allocates a block so large that the allocator joins the free ones (malloc_consolidate()). Each
 * block has a pointer to it until it is freed, and none afterwards.
 *
 *	bursts one|two	threads; the second one waits, so that the allocator uses locks
 *	bursts ending	a thread fills its tcache and ends after a byte was read
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST 20

static void *held[2 * BURST];

static void make(void **p, size_t size)
{
	*p = malloc(size);
	memset(*p, 0x22, size);
}

static void drop(void **p)
{
	free(*p);
	*p = NULL;
}

static __attribute__((noinline)) void join(void)
{
	void *volatile large;
	char c;

	if (read(0, &c, 1) == 1) {
		large = malloc(3000);
		free(large);
	}
}

/* Frees every second block, so that the free ones cannot all be joined. */
static void burst(size_t size)
{
	for (int i = 0; i < 2 * BURST; i++) {
		drop(&held[i]);
		make(&held[i], size);
	}
	for (int i = 0; i < 2 * BURST; i += 2)
		drop(&held[i]);
	join();
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *ending(void *arg)
{
	char c;

	for (size_t i = 0; i < 2 * BURST; i++)
		make(&held[i], 24 + i % 4 * 16);
	for (size_t i = 0; i < 2 * BURST; i++)
		drop(&held[i]);
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) == 1 ? arg : NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t th;

	alarm(86400);
	if (strcmp(how, "one") != 0)
		pthread_create(&th, NULL, strcmp(how, "ending") ? idle : ending, NULL);
	if (!strcmp(how, "ending"))
		idle(NULL);
	puts("ready");
	fflush(stdout);
	for (size_t size = 24;; size = size < 100 ? size + 16 : 24)
		burst(size);
	return 0;
}
