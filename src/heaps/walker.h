/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walkers, one for each allocator.  A walker lists every live block of its allocator in an
 * image, and reports whether the list agrees with the allocator's own counters.
 */
#ifndef HEAPS_WALKER_H
#define HEAPS_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include "snapshot/image.h"
#include "lib/err.h"
#include "lib/vec.h"

/* A block that is allocated and not freed.  Only 16 bytes, since there are millions of them. */
struct heap_block {
	uint64_t addr; /* as malloc returned it */
	uint64_t size; /* usable bytes */
};

enum heap_kind {
	HEAP_ARENA,    /* contains live blocks, free blocks and headers */
	HEAP_MMAPPED,  /* a mapping for a single block */
	HEAP_METADATA, /* the allocator's data outside its arenas */
};

/* Memory that the allocator owns.  Only its live blocks are scanned for pointers, so free blocks,
 * caches and headers keep nothing reachable. */
struct heap_range {
	uint64_t start, end;
	enum heap_kind kind;
};

/* A place where the allocator's data contradicts itself. */
struct heap_damage {
	uint64_t addr;
	char what[96];
};

struct heap {
	const char *allocator;		/* "glibc malloc" */
	char version[32];		/* "" if not known */
	VEC(struct heap_block) blocks;	/* sorted by address by heap_finish() */
	VEC(struct heap_range) owned;	/* sorted by address by heap_finish() */
	VEC(struct heap_range) skipped; /* parts of owned, not understood: scanned as roots */
	VEC(struct heap_damage) damaged;
	uint64_t live_bytes;	 /* sum over blocks; heap_finish() */
	uint64_t free_bytes;	 /* in free lists and at the tops of arenas */
	uint64_t cached_bytes;	 /* in the threads' caches (also free) */
	uint64_t metadata_bytes; /* headers, bitmaps, tables */
	uint32_t arenas;
	bool checksum_known; /* the allocator has counters to compare the list with */
	bool exact;	     /* the list agrees with them */
	bool busy;	     /* a thread holds a lock of the allocator */
	bool passing;	     /* not exact because threads were in it: might be exact later */
	char doubt[160];     /* why it is not exact, in one line */
};

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
extern const struct walker walker_tcmalloc;
extern const struct walker walker_glibc;

/* All walkers, NULL-terminated. */
extern const struct walker *const walkers[];

/* walker_run() - call @w->walk() if it was tested on the architecture, else return -ENOENT or
 * -ENOTSUP. */
int walker_run(const struct walker *w, struct image *img, struct heap *heap, struct mp_err *err);

/* For walkers: add a live block, or an owned range.  Return: 0 or -ENOMEM. */
int heap_add(struct heap *h, uint64_t addr, uint64_t size);
int heap_own(struct heap *h, uint64_t start, uint64_t end, enum heap_kind kind);
/* Notes damage at @addr, described by @fmt; at most 100 are kept. */
void heap_damage(struct heap *h, uint64_t addr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears .exact and notes why; the first reason is kept. */
void heap_doubt(struct heap *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As heap_doubt(), and sets .passing: at another moment there might be no doubt. */
void heap_doubt_now(struct heap *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Marks [@start, @end) as the allocator's memory whose blocks are not known.  Pointers in it count
 * as roots, since they might be the ones that keep a block.  Return: 0 or -ENOMEM. */
int heap_skip(struct heap *h, uint64_t start, uint64_t end);
/* Sorts the owned ranges, and merges adjacent ones of the same kind. */
void heap_sort_owned(struct heap *h);
/* Sorts blocks and ranges, merges adjacent ranges of the same kind, and sums up. */
void heap_finish(struct heap *h);
void heap_free(struct heap *h);
/* Return: the one of the first @n owned ranges that contains @addr, or NULL.  These must be sorted.
 */
const struct heap_range *heap_owner(const struct heap *h, size_t n, uint64_t addr);

#endif
