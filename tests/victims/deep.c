/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* At depth DEPTH of the stack it calls realloc(NULL), which in glibc calls malloc, frees the block, and
 * calls tick(), again and again.  Prints the address of tick() first. */
#include <stdio.h>
#include <stdlib.h>

static volatile int over;   /* never */
static void *volatile none; /* so that the compiler does not call malloc itself */

static __attribute__((noinline)) void tick(void)
{
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void go_down(long depth)
{
	if (depth > 0) {
		go_down(depth - 1);
		__asm__ volatile(""); /* no tail call */
		return;
	}
	while (!over) {
		free(realloc(none, 100));
		tick();
	}
}

int main(int argc, char **argv)
{
	printf("%p\n", (void *)tick);
	fflush(stdout);
	go_down(argc > 1 ? atol(argv[1]) : 0);
	return 0;
}
