/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Touches every page of blocks of 4 MiB that come from the kernel, 10 frames deep: pages SECONDS.
 */
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include "measure.h"

#define BLOCK (4u << 20)

static long some_pages(void *ctx)
{
	long page = *(long *)ctx;
	char *volatile p = malloc(BLOCK);

	if (!p)
		exit(1);
	/* From the second page on: malloc() has touched the first, which has the header. */
	madvise(p - (size_t)p % (size_t)page, BLOCK, MADV_NOHUGEPAGE);
	for (long at = page; at < (long)BLOCK; at += page)
		p[at] = 1;
	free(p);
	return (long)BLOCK / page;
}

__attribute__((noinline)) static struct measure descend(int depth, double seconds)
{
	long page = sysconf(_SC_PAGESIZE);
	struct measure m =
	    depth > 1 ? descend(depth - 1, seconds) : measure(some_pages, &page, seconds);

	__asm__ volatile("" : "+m"(m));
	return m;
}

int main(int argc, char **argv)
{
	struct measure m;

	mallopt(M_MMAP_THRESHOLD, BLOCK / 4); /* also keeps free() from raising it */
	m = descend(8, argc > 1 ? atof(argv[1]) : 1);
	print_measures(&m, 1);
	return 0;
}
