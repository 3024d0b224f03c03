/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Takes 100,000 distinct call paths in random order, each 17 calls deep: paths SECONDS.  The bits
 * of the path's number select which of two functions is called at each level. */
#include "measure.h"

#define PATHS  100000
#define LEVELS 17

static long left(unsigned int path, int level);
static long right(unsigned int path, int level);

static long leaf(void)
{
	void *volatile p = malloc(48);

	free(p);
	return 1;
}

static inline long go_on(unsigned int path, int level)
{
	if (level == LEVELS)
		return leaf();
	return path >> level & 1 ? right(path, level + 1) : left(path, level + 1);
}

__attribute__((noinline)) static long left(unsigned int path, int level)
{
	long n = go_on(path, level);

	__asm__ volatile("" : "+r"(n));
	return n;
}

__attribute__((noinline)) static long right(unsigned int path, int level)
{
	long n = go_on(path, level);

	__asm__ volatile("" : "+r"(n));
	return n;
}

static long some_paths(void *ctx)
{
	static unsigned long x = 1;
	long n = 0;

	(void)ctx;
	for (int i = 0; i < 1000; i++) {
		x = x * 6364136223846793005ul + 1442695040888963407ul;
		n += left((unsigned int)((x >> 33) % PATHS), 0);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct measure m = measure(some_paths, NULL, argc > 1 ? atof(argv[1]) : 1);

	print_measures(&m, 1);
	return 0;
}
