/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a heap of N reachable blocks with two pointers each, and LEAKS blocks to which nothing
 * points: graph N LEAKS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void **root;

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	size_t leaks = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;
	uint64_t x = 88172645463325252ull;

	root = malloc(n * sizeof(*root));
	if (!root)
		return 1;
	for (size_t i = 0; i < n; i++) {
		size_t size = 24 + next_random(&x) % 130;

		root[i] = memset(malloc(size), 0x11, size);
	}
	for (size_t i = 0; i < n; i++) {
		((void **)root[i])[0] = root[next_random(&x) % n];
		((void **)root[i])[1] = root[next_random(&x) % n];
	}
	for (size_t i = 0; i < leaks; i++) {
		volatile uintptr_t *p = malloc(40);

		p[0] = i;
	}
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
