/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which pages of a process are in memory or in swap: /proc/PID/pagemap
 * (Documentation/admin-guide/mm/pagemap.rst).  A process can have terabytes of untouched address
 * space.  With PAGEMAP_SCAN (Linux 6.7) the kernel skips it by its page tables; on older kernels
 * mappings that are empty according to /proc/PID/smaps are skipped.
 */
#ifndef ATTACH_PROC_PAGEMAP_H
#define ATTACH_PROC_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/proc/smaps.h"
#include "lib/check.h"

/* uapi linux/fs.h; Debian 12 has an older version of that header */
struct pagemap_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
	    category_mask, category_anyof_mask, return_mask;
};
#define PAGEMAP_SCAN_PROTECT 1u /* a flag: PM_SCAN_WP_MATCHING */
/* PAGEMAP_SCAN on an open pagemap.  Return: number of regions written, or -errno (-ENOTTY: the
 * kernel does not support it). */
long pagemap_scan(int pagemap, struct pagemap_scan_arg *arg);

/**
 * pagemap_present() - bytes of [@start, @end) that a process has in memory, as its resident set
 * counts them
 * @fd: its pagemap
 * Before Linux 6.7 pages that were only read and never written count, too.
 */
uint64_t pagemap_present(int fd, uint64_t start, uint64_t end);

#define PAGEMAP_RUNS 512

/* A run of one or more pages of the same kind. */
struct page_run {
	uint64_t start, end;
	bool swapped; /* otherwise in memory */
};

struct pagemap {
	int fd; /* -1: could not be opened */
	uint32_t page_size;
	bool scans;		/* PAGEMAP_SCAN is supported */
	struct map_usages held; /* not empty mappings; without PAGEMAP_SCAN */
	/* Result of the last query: all runs in [from, to). */
	uint64_t from, to;
	size_t n, next;
	struct page_run run[PAGEMAP_RUNS];
};

/* Opens the pagemap of process @pid.  Return: 0 or -errno; @p can be closed in both cases. */
__must_check int pagemap_open(struct pagemap *p, pid_t pid);
void pagemap_close(struct pagemap *p);
/**
 * pagemap_next() - the next pages in memory or swap, at or after @at and before @end
 * A long run can be returned in several parts.  Pages whose state cannot be read are taken to be in
 * memory.
 * @run: set to the run
 * Return: false if there is none.
 */
bool pagemap_next(struct pagemap *p, uint64_t at, uint64_t end, struct page_run *run);

#endif
