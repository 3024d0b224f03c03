/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walkers, one for each allocator.  A walker lists every live block of its allocator in an
 * image, and reports whether the list agrees with the allocator's own counters.
 */
#ifndef HEAPS_WALKER_H
#define HEAPS_WALKER_H

#include "heaps/heap.h"
#include "lib/err.h"
#include "snapshot/image.h"

struct walker {
	const char *name;
	/* machines: names of the architectures on which the walker was tested, separated by blanks;
	 * NULL: any.  On others it is not called, and executable maps of a path that contains
	 * @library show that the allocator is present. */
	const char *machines, *library;
	/* Fills @heap (zeroed).  Return: 0; -ENOENT: the allocator is not in this process, or was
	 * never used; -ENOTSUP: it is present (heap.allocator has its name), but its layout is not
	 * known, so its memory must be treated as roots; else -errno.  @err is filled except for
	 * -ENOENT. */
	int (*walk)(struct image *img, struct heap *heap, struct mp_err *err);
};

extern const struct walker walker_jemalloc;
extern const struct walker walker_mimalloc;
extern const struct walker walker_musl_ng;
extern const struct walker walker_musl_old;
extern const struct walker walker_python;
extern const struct walker walker_tcmalloc;
extern const struct walker walker_glibc;

/* All walkers, NULL-terminated. */
extern const struct walker *const walkers[];

/* walker_run() - call @w->walk() if it was tested on the architecture, else return -ENOENT or
 * -ENOTSUP. */
int walker_run(const struct walker *w, struct image *img, struct heap *heap, struct mp_err *err);

#endif
