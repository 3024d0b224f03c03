/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library to be loaded while memprof records: an allocator with jemalloc's entry points that
 * takes blocks from an array. */
#include <stddef.h>

void *je_mallocx(size_t size, int flags);
void je_dallocx(void *p, int flags);

static char pool[1 << 24] __attribute__((aligned(16)));
static size_t used;

void *je_mallocx(size_t size, int flags)
{
	void *p = pool + used;

	(void)flags;
	used = (used + size + 15) & ~(size_t)15;
	return used < sizeof(pool) ? p : NULL;
}

void je_dallocx(void *p, int flags)
{
	for (int i = 0; i < 8; i++)
		((volatile char *)p)[i] = (char)(flags + i);
}
