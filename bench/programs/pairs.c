/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pairs of malloc and free, 16 to 512 bytes, at a given stack depth: pairs DEPTH SECONDS.
 * SECONDS 0: prints the address of free and continues until it is killed (for steps.c). */
#include "measure.h"

static unsigned int x = 1;

static long some_pairs(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 1000; i++) {
		void *volatile p;

		x = x * 1664525 + 1013904223;
		p = malloc(16 + (x >> 8) % 497);
		free(p);
	}
	return 1000;
}

__attribute__((noinline)) static struct measure descend(int depth, double seconds)
{
	struct measure m =
	    depth > 1 ? descend(depth - 1, seconds) : measure(some_pairs, NULL, seconds);

	__asm__ volatile("" : "+m"(m));
	return m;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	struct measure m;

	if (seconds == 0) {
		printf("%p\n", (void *)free);
		fflush(stdout);
		seconds = 1e9;
	}
	m = descend(depth - 2, seconds); /* main, ..., some_pairs */
	print_measures(&m, 1);
	return 0;
}
