/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process that has much more address space than memory, like databases, Go, Java and programs
 * with AddressSanitizer:
 *
 *	reserved GIB
 *
 * It has GIB GiB of writable memory of which few pages were touched, as much memory that cannot be
 * accessed, and a table of 4 MiB with addresses in large mappings.  It has two blocks: only the
 * last page of the writable memory has an address in one of them, and nothing has that of the
 * other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE	(16ul << 20)
#define NLARGE	16
#define KEPT	33333
#define LEAKED	44444
#define TOUCHED 64

static volatile uintptr_t table[512 << 10];

static char *reserve(size_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("reserved");
		exit(1);
	}
	return p;
}

static void __attribute__((noinline)) blocks(char *last)
{
	*(void *volatile *)last = malloc(KEPT);
	*(void *volatile *)last = (char *)*(void *volatile *)last + 1; /* points into the block */
	*(void *volatile *)(last + sizeof(void *)) = malloc(LEAKED);
	*(void *volatile *)(last + sizeof(void *)) = NULL;
}

static void __attribute__((noinline)) scrub(void)
{
	volatile char below[16384];

	for (size_t i = 0; i < sizeof(below); i++)
		below[i] = 0;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 30, page = 4096;
	char *p = reserve(size, PROT_READ | PROT_WRITE), *large[NLARGE], c;

	reserve(size, PROT_NONE);
	for (size_t i = 0; i < TOUCHED; i++)
		p[size / TOUCHED * i] = 1;
	for (size_t i = 0; i < NLARGE; i++)
		large[i] = reserve(LARGE, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		table[i] = (uintptr_t)large[i % NLARGE] + i / NLARGE % (LARGE / 128) * 64;
	blocks(p + size - page);
	scrub();
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
