/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a walker finds: the live blocks of one allocator, the memory that it owns, and how certain
 * the list is. */
#ifndef HEAPS_HEAP_H
#define HEAPS_HEAP_H

#include <stdbool.h>
#include <stdint.h>
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
	bool busy;	     /* a thread holds a lock of the allocator, or executes in it */
	bool changing;	     /* heap_was_changing() was called */
	bool passing;	     /* not exact because threads were in it: might be exact later */
	char doubt[256];     /* why it is not exact, in one line */
};

/* Adds a live block, or an owned range.  Return: 0 or -ENOMEM. */
int heap_add(struct heap *h, uint64_t addr, uint64_t size);
int heap_own(struct heap *h, uint64_t start, uint64_t end, enum heap_kind kind);
/* Notes damage at @addr, described by @fmt; at most 100 are kept. */
void heap_damage(struct heap *h, uint64_t addr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The heap was read while a thread changed it.  That can look like damage, so damage noted before and
 * after this call is dropped. */
void heap_was_changing(struct heap *h);
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
