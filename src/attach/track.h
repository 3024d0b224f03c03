/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tracks which pages of a running process have been written since the last scan: userfaultfd write
 * protection that the kernel removes by itself at the first write (UFFD_FEATURE_WP_ASYNC, Linux
 * 6.7; Documentation/admin-guide/mm/userfaultfd.rst, "Write Protect Notifications", and
 * pagemap.rst, PAGEMAP_SCAN).  The process never waits for memprof: a first write costs one more
 * page fault.
 *
 *	track_begin()	target stopped: opens a descriptor for memprof and closes its own
 *	track_add(), track_scan()	target running or stopped
 *	track_end()	ends the registration; so does the end of memprof
 *
 * A child made by fork() is not affected, and memory that the process maps later is not tracked.
 */
#ifndef ATTACH_TRACK_H
#define ATTACH_TRACK_H

#include "attach/target.h"
#include "lib/check.h"

/* Page categories, numbered as in the kernel's uapi linux/fs.h. */
#define TRACK_ALLOWED	(1u << 0) /* page of tracked memory */
#define TRACK_WRITTEN	(1u << 1) /* written, or never protected */
#define TRACK_FILE	(1u << 2) /* unchanged file page; not in tracked memory */
#define TRACK_PRESENT	(1u << 3)
#define TRACK_SWAPPED	(1u << 4)
#define TRACK_ZERO_PAGE (1u << 5) /* the shared page of zeros of memory that was only read */

/* Same layout as the kernel's struct page_region. */
struct track_run {
	uint64_t start, end, categories;
};

struct track_range {
	uint64_t start, end;
};

struct track {
	int uffd, pagemap; /* -1: none */
	VEC(struct track_range) ranges;
};

/* Does the running kernel support all of this?  Touches no other process. */
bool track_supported(void);

/**
 * track_begin() - prepare tracking in the stopped @t
 * Checks the target's seccomp filters first.  The process has one more descriptor for some
 * microseconds.
 * Return: 0, or a negative errno with @err; then no track_end() is needed.
 */
__must_check int track_begin(struct track *k, struct target *t, struct mp_err *err);

/* Tracks the private anonymous mappings from @start to @end, page addresses.  Protects nothing yet.
 * Return: 0 or -errno; -EBUSY: the program itself uses userfaultfd there. */
__must_check int track_add(struct track *k, uint64_t start, uint64_t end);
bool track_has(const struct track *k, uint64_t start, uint64_t end);

/**
 * track_scan() - touched pages from *@at to @end, in runs of the same categories
 * @at: set to where the next call continues (@end: done)
 * @protect: return only pages that were written, and protect them so that the next write is seen
 * @runs, @n: array for the runs and its size
 * Return: how many runs, or -errno.
 */
long track_scan(struct track *k, uint64_t *at, uint64_t end, bool protect, struct track_run *runs,
		size_t n);

/* Return: the first touched page at or after @at, or @end if there is none.  Skips terabytes of
 * untouched memory without scanning them in steps. */
uint64_t track_next(struct track *k, uint64_t at, uint64_t end);

/* Makes these pages count as written. */
void track_forget(struct track *k, uint64_t start, uint64_t end);

/* Removes the protection, in small steps so that the target's own mmap() never waits long, and then
 * the registration. */
void track_end(struct track *k);

#endif
