/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walkers: one allocator each.  A walker lists every live block of its allocator in an image,
 * and says whether the list agrees with the allocator's own counters.
 */
#ifndef LEAKS_WALKER_H
#define LEAKS_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include "leaks/image.h"
#include "lib/err.h"
#include "lib/vec.h"

/* A block that the program holds: allocated and not freed.  16 bytes, for there are millions. */
struct heap_block {
	uint64_t addr; /* as malloc returned it */
	uint64_t size; /* usable bytes */
};

enum heap_kind {
	HEAP_ARENA,    /* live blocks, free blocks, headers */
	HEAP_MMAPPED,  /* a mapping of its own for one block */
	HEAP_METADATA, /* the allocator's own data outside of its arenas */
};

/* Memory the allocator owns.  Only live blocks in it are looked at for pointers, so free blocks,
 * caches and headers keep nothing alive. */
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
	char version[32];		/* "" if it cannot be told */
	VEC(struct heap_block) blocks;	/* by address; heap_finish() sorts */
	VEC(struct heap_range) owned;	/* by address; heap_finish() sorts */
	VEC(struct heap_range) skipped; /* in owned ones, and not understood: looked at as roots */
	VEC(struct heap_damage) damaged;
	uint64_t live_bytes;	 /* sum over blocks; heap_finish() */
	uint64_t free_bytes;	 /* in free lists and at the tops of arenas */
	uint64_t cached_bytes;	 /* in the caches of threads (free, too) */
	uint64_t metadata_bytes; /* headers, bitmaps, tables */
	uint32_t arenas;
	bool checksum_known; /* the allocator has counters to compare with */
	bool exact;	     /* they agree */
	bool busy;	     /* a thread was in it, with a lock */
	bool passing;	 /* not exact since threads were in the allocator: in a moment it may be */
	char doubt[160]; /* why not exact: one line */
};

struct walker {
	const char *name;
	/* Names of the architectures that it was tried on, with blanks between them; NULL: any.  On
	 * others it is not asked; there code mapped from a path with @library in it tells that the
	 * allocator is there. */
	const char *machines, *library;
	/* Fills @heap (zeroed).  Return: 0; -ENOENT: the allocator is not in this process, or was
	 * never used; -ENOTSUP: it is there (heap.allocator names it), but its layout is not known,
	 * so that its memory is to be treated as roots; else -errno.  @err is filled but for
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

/* walker_run() - @w->walk(), or -ENOENT or -ENOTSUP where it was not tried; as it returns. */
int walker_run(const struct walker *w, struct image *img, struct heap *heap, struct mp_err *err);

/* For walkers.  Return: 0 or -ENOMEM. */
int heap_add(struct heap *h, uint64_t addr, uint64_t size);
int heap_own(struct heap *h, uint64_t start, uint64_t end, enum heap_kind kind);
/* @fmt: what is wrong at @addr; at most 100 are kept. */
void heap_damage(struct heap *h, uint64_t addr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears .exact and says why; the first reason stays. */
void heap_doubt(struct heap *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, and sets .passing: at another moment there may be no doubt. */
void heap_doubt_now(struct heap *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What lies between @start and @end is the allocator's, but which blocks it holds is not known: a
 * pointer in there may be what keeps a block.  Return: 0 or -ENOMEM. */
int heap_skip(struct heap *h, uint64_t start, uint64_t end);
/* Sorts the owned ranges, and merges those of a kind that touch. */
void heap_sort_owned(struct heap *h);
/* Sorts, merges touching ranges of a kind, sums up. */
void heap_finish(struct heap *h);
void heap_free(struct heap *h);
/* Return: which of the first @n owned ranges contains @addr, or NULL; these must be sorted. */
const struct heap_range *heap_owner(const struct heap *h, size_t n, uint64_t addr);

#endif
