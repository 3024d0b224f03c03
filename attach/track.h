/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which pages of a running process have been written since we last looked: userfaultfd write
 * protection that the kernel takes away by itself at the first write (UFFD_FEATURE_WP_ASYNC, Linux
 * 6.7; Documentation/admin-guide/mm/userfaultfd.rst, "Write Protect Notifications", and
 * pagemap.rst, PAGEMAP_SCAN).  Nobody ever waits for memprof: a write costs one fault more.
 *
 *	track_begin()	target stopped: it makes the descriptor, we take it, it closes its own
 *	track_add(), track_scan()	target running or stopped
 *	track_end()	the registration is gone; so it is when memprof dies
 *
 * fork() gives a child nothing of it, and what the process maps anew is not tracked.
 */
#ifndef ATTACH_TRACK_H
#define ATTACH_TRACK_H

#include "attach/target.h"
#include "lib/check.h"

/* Of pages, as the kernel's uapi linux/fs.h numbers them. */
#define TRACK_ALLOWED	(1u << 0) /* in tracked memory */
#define TRACK_WRITTEN	(1u << 1) /* or never protected */
#define TRACK_FILE	(1u << 2) /* unchanged page of a file; where it is not tracked */
#define TRACK_PRESENT	(1u << 3)
#define TRACK_SWAPPED	(1u << 4)
#define TRACK_ZERO_PAGE (1u << 5) /* the one page of zeros that all read memory has */

/* Laid out as the kernel's struct page_region. */
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

/* Does the kernel that runs have all of it?  Touches no other process. */
bool track_supported(void);

/**
 * track_begin() - prepare tracking in the stopped @t
 * Asks its seccomp filters first.  The process has one descriptor more for some microseconds.
 * Return: 0, or a negative errno with @err and nothing to be ended.
 */
__must_check int track_begin(struct track *k, struct target *t, struct mp_err *err);

/* Tracks private anonymous mappings from @start to @end, addresses of pages.  Nothing is protected
 * yet.  Return: 0 or -errno: -EBUSY, the program itself has userfaultfd there. */
__must_check int track_add(struct track *k, uint64_t start, uint64_t end);
bool track_has(const struct track *k, uint64_t start, uint64_t end);

/**
 * track_scan() - touched pages from *@at to @end, in runs of the same categories
 * @protect: only those that were written, and from now on the next write is seen
 * @runs, @n: room for so many
 * Return: how many runs, with *@at where the next call goes on (@end: done); or -errno.
 */
long track_scan(struct track *k, uint64_t *at, uint64_t end, bool protect, struct track_run *runs,
		size_t n);

/* Return: the first touched page at or behind @at, @end if there is none before that: terabytes
 * that were not need not be gone through in steps. */
uint64_t track_next(struct track *k, uint64_t at, uint64_t end);

/* These pages count as written. */
void track_forget(struct track *k, uint64_t start, uint64_t end);

/* Takes the protection away, in small steps so that the target's own mmap never waits long, and
 * then the registration. */
void track_end(struct track *k);

#endif
