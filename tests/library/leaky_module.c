/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library that the tests of the pytest plug-in load with ctypes: it allocates and leaks outside of Python. */
#include <stdlib.h>
#include <string.h>

static void *volatile kept[1000];

/* Allocates and frees a block of @size bytes. */
void burst(size_t size)
{
	void *volatile p = malloc(size);

	memset(p, 1, size);
	free(p);
}

/* Leaks @n blocks of @size bytes. */
void lose(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		*(void *volatile *)calloc(1, size) = NULL;
}

/* Keeps @n blocks, at most 1000, of @size bytes. */
void keep(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		kept[i] = calloc(1, size);
}

/* Makes @n pairs of events as fast as possible. */
void flood(long n)
{
	for (long i = 0; i < n; i++) {
		void *volatile p = malloc(i % 1000 + 1);

		free(p);
	}
}
