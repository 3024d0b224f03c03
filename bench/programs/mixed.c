/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls random ones of 16 call chains of 20 to 50 frames, which differ from near main on, and makes
 * PAIRS pairs of malloc and free in each: mixed PAIRS SECONDS. */
#include "measure.h"

#define CHAINS 16

static int in_a_row = 1;

static long leaf(void)
{
	for (int i = 0; i < in_a_row; i++) {
		void *volatile p = malloc(48);

		free(p);
	}
	return in_a_row;
}

/* wide() and narrow() have frames of different size.  The chain and the depth decide which one is
 * called, so that each chain has its frames at other stack addresses. */
static long narrow(unsigned int chain, int depth);

__attribute__((noinline)) static long wide(unsigned int chain, int depth)
{
	volatile char room[64];
	long n;

	room[0] = 0;
	n = depth ? narrow(chain, depth - 1) : leaf();
	__asm__ volatile("" : "+r"(n) : "m"(room[0]));
	return n;
}

__attribute__((noinline)) static long narrow(unsigned int chain, int depth)
{
	long n;

	if (!depth)
		n = leaf();
	else if (chain >> depth % 4 & 1)
		n = wide(chain, depth - 1);
	else
		n = narrow(chain, depth - 1);
	__asm__ volatile("" : "+r"(n));
	return n;
}

static long some_chains(void *ctx)
{
	static unsigned int x = 1;
	long n = 0;

	(void)ctx;
	for (int i = 0; i < 1000 / in_a_row; i++) {
		unsigned int chain;

		x = x * 1664525 + 1013904223;
		chain = (x >> 16) % CHAINS;
		n += chain & 1 ? wide(chain, 20 + 2 * (int)chain)
			       : narrow(chain, 20 + 2 * (int)chain);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct measure m;

	in_a_row = argc > 1 ? atoi(argv[1]) : 1;
	if (in_a_row < 1)
		return 2;
	m = measure(some_chains, NULL, argc > 2 ? atof(argv[2]) : 1);
	print_measures(&m, 1);
	return 0;
}
