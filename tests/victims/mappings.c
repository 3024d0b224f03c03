/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process with very many mappings, like those with allocators that use guard pages.
 *
 *	mappings N	N mappings of one page; every second one is writable and was written
 *
 * Prints "ready".  At the end of stdin prints, in microseconds, the longest time for which one of
 * its threads did not run, and the sum of such times longer than 2 ms.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define NOTABLE 2000 /* us */

static volatile int ending;
static uint64_t longest, all;

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void *watch(void *arg)
{
	uint64_t before = now_us();

	while (!ending) {
		uint64_t now, gap;

		usleep(100);
		now = now_us();
		gap = now - before;
		before = now;
		longest = gap > longest ? gap : longest;
		all += gap > NOTABLE ? gap : 0;
	}
	return arg;
}

static int make(size_t n)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < n; i += 2) {
		p[i * PAGE] = 1;
		if (i + 1 < n && mprotect(p + (i + 1) * PAGE, PAGE, PROT_READ))
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	pthread_t th;
	char c;

	if (pthread_create(&th, NULL, watch, NULL))
		return 1;
	for (int i = 0; i < 100; i++) {
		if (!malloc(1000)) /* leaked */
			return 1;
	}
	if (make(n)) {
		perror("mappings");
		return 1;
	}
	longest = all = 0;
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	ending = 1;
	pthread_join(th, NULL);
	printf("%llu %llu\n", (unsigned long long)longest, (unsigned long long)all);
	return 0;
}
