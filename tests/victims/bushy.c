/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Usage: bushy LEVELS BLOCKS [DEEPER].  After a character on stdin, allocates BLOCKS blocks from
 * each of 2^LEVELS stacks, which have LEVELS + DEEPER frames and some more.  Prints "done" and
 * keeps the blocks until the next character. */
#include <stdio.h>
#include <stdlib.h>

static int blocks;
static void *volatile last;

/* The barriers keep the compiler from making tail calls and from merging the two calls. */
static __attribute__((noinline)) void grow(int level)
{
	if (!level) {
		for (int i = 0; i < blocks; i++)
			last = malloc(16);
		return;
	}
	grow(level - 1);
	__asm__ volatile("" : : : "memory");
	grow(level - 1);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void deeper(int levels, int frames)
{
	if (frames)
		deeper(levels, frames - 1);
	else
		grow(levels);
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	int levels = argc > 1 ? atoi(argv[1]) : 10;

	blocks = argc > 2 ? atoi(argv[2]) : 1;
	puts("ready");
	fflush(stdout);
	getchar();
	deeper(levels, argc > 3 ? atoi(argv[3]) : 0);
	puts("done");
	fflush(stdout);
	getchar();
	return 0;
}
