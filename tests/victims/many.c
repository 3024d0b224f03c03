/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Usage: many BLOCKS.  At a line on stdin allocates BLOCKS blocks of 16 bytes, prints that it has,
 * and keeps them until the next line. */
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
