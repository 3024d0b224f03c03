/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scans everything outside the heaps for addresses of blocks. */
#ifndef LEAKS_ROOTS_H
#define LEAKS_ROOTS_H

#include "leaks/graph.h"
#include "lib/err.h"

/* What the roots were, for the report. */
struct coverage {
	uint64_t dead_stacks;	 /* cached stacks of exited threads, not scanned */
	uint64_t unfrozen_bytes; /* not in the copy: read from the running process */
	uint64_t skipped_bytes;	 /* memprof's own mappings */
	uint32_t kernel_words;	 /* from epoll and timers */
	/* Alternate signal stacks; the threads are asked for them only if a leaked block could be
	 * one.  unasked: threads that could not be asked, if a leaked block can be that of one. */
	uint32_t signal_stacks, unasked;
};
/* The ranges of all heaps.  Owned ranges (sorted) are not roots, except for the skipped parts in
 * them. */
struct heap_ranges {
	const struct heap_range *owned;
	size_t nowned;
	const struct heap_range *skipped;
	size_t nskipped;
	bool busy; /* a thread holds a lock of an allocator */
};

/* Scans all roots.  Return: 0 or -errno with @err. */
int roots_scan(struct graph *g, struct image *img, const struct heap_ranges *heaps,
	       struct coverage *c, struct mp_err *err);

#endif
