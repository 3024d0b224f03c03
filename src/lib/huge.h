/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Huge pages for large arrays that are read in random order: most of the time of such reads is the
 * walk through page tables. */
#ifndef LIB_HUGE_H
#define LIB_HUGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_MIN (8u << 20) /* bytes; the last huge page can be empty but for one byte */

/* Asks for huge pages for [@p, @p + @bytes), of malloc(), before it is written to.  @p: can be
 * NULL.  Return: @p. */
static inline void *huge_pages(void *p, size_t bytes)
{
	/* Whole pages: a mapping of which a part has other flags cannot be grown by realloc(). */
	const uintptr_t page = 4096, start = (uintptr_t)p & ~(page - 1),
			end = ((uintptr_t)p + bytes + page - 1) & ~(page - 1);

	/* Without huge pages it is only slower. */
	if (p && bytes >= HUGE_MIN)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
	return p;
}

/* Moves @bytes, of large arrays of malloc(), and gives the memory at @from back piece by piece, so
 * that they are in memory only once.  What is at @from then is undefined, but must still be freed.
 */
static inline void huge_move(void *to, void *from, size_t bytes)
{
	const size_t piece = 4u << 20;
	/* No machine has larger pages. */
	const uintptr_t page = 65536;

	for (size_t at = 0; at < bytes; at += piece) {
		const size_t n = bytes - at < piece ? bytes - at : piece;
		const uintptr_t begin = ((uintptr_t)from + at + page - 1) & ~(page - 1),
				end = ((uintptr_t)from + at + n) & ~(page - 1);

		memcpy((char *)to + at, (char *)from + at, n);
		if (end > begin && bytes >= HUGE_MIN)
			(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
}

#endif
