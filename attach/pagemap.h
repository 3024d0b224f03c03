/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which pages of a process hold something: /proc/PID/pagemap (Documentation/admin-guide/mm/
 * pagemap.rst).  A process may have terabytes of which it has touched nothing: the kernel skips
 * them by its page tables (PAGEMAP_SCAN, Linux 6.7), or where it cannot yet, mappings that hold
 * nothing are not asked for (/proc/PID/smaps).
 */
#ifndef ATTACH_PAGEMAP_H
#define ATTACH_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/smaps.h"
#include "lib/check.h"

/* uapi linux/fs.h, of which Debian 12 has an older one. */
struct pagemap_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
	    category_mask, category_anyof_mask, return_mask;
};
#define PAGEMAP_SCAN_PROTECT 1u /* a flag: PM_SCAN_WP_MATCHING */
/* PAGEMAP_SCAN on an open pagemap.  Return: regions written, or -errno: no such thing here. */
long pagemap_scan(int pagemap, struct pagemap_scan_arg *arg);

/**
 * pagemap_present() - bytes of [@start, @end) that a process has in memory, as its resident set
 * counts them; @fd: its pagemap
 * Before Linux 6.7 pages that were only read and never written count, too.
 */
uint64_t pagemap_present(int fd, uint64_t start, uint64_t end);

#define PAGEMAP_RUNS 512

/* Pages of one kind, at least one. */
struct page_run {
	uint64_t start, end;
	bool swapped; /* else in memory */
};

struct pagemap {
	int fd; /* -1: cannot be had */
	uint32_t page_size;
	bool scans;		/* by PAGEMAP_SCAN */
	struct map_usages held; /* mappings that hold something, where it cannot be used */
	/* What the last question was answered with: all that holds something in [from, to). */
	uint64_t from, to;
	size_t n, next;
	struct page_run run[PAGEMAP_RUNS];
};

/* Opens that of process @pid.  Return: 0 or -errno; @p may be closed in both cases. */
__must_check int pagemap_open(struct pagemap *p, pid_t pid);
void pagemap_close(struct pagemap *p);
/**
 * pagemap_next() - the next pages that hold something, at or behind @at and before @end
 * A long stretch may come in several runs.  What cannot be told is taken to hold something.
 * @run: set to it
 * Return: false if there are none.
 */
bool pagemap_next(struct pagemap *p, uint64_t at, uint64_t end, struct page_run *run);

#endif
