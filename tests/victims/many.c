/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocates BLOCKS blocks of 16 bytes once a line has come on stdin, says so, and keeps them until
 * another line.  Usage: many BLOCKS */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	void **block = malloc((size_t)n * sizeof(*block));

	if (!block)
		return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	for (long i = 0; i < n; i++)
		block[i] = malloc(16);
	puts("done");
	fflush(stdout);
	getchar();
	return !block[n / 2];
}
