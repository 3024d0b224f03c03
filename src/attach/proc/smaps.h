/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory usage of each mapping of a process: /proc/PID/smaps (Documentation/filesystems/proc.rst).
 */
#ifndef ATTACH_PROC_SMAPS_H
#define ATTACH_PROC_SMAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "lib/check.h"
#include "lib/vec.h"

/* Sizes in bytes; prot as PROT_*. */
struct map_usage {
	uint64_t start, end, rss, anonymous, swap;
	uint32_t prot;
	bool shared;
	bool dontfork; /* a child does not inherit this memory: madvise(2), MADV_DONTFORK */
	bool hugetlb;  /* mapping of huge pages from a pool; its memory is in none of the sums */
	char *path;
};
struct map_usages {
	VEC(struct map_usage) list;
};

/* Parses smaps text; empty mappings are left out, unless they are @dontfork or @hugetlb.  Return: 0
 * or -EINVAL/-ENOMEM with @u empty. */
__must_check int map_usages_parse(FILE *text, struct map_usages *u);
/* Return: 0, -ESRCH, -EACCES, ...  The kernel walks the page tables: about a millisecond for each
 * GiB of small pages, during which the target's own mmap() can be delayed. */
__must_check int map_usages_read(pid_t pid, struct map_usages *u);
void map_usages_free(struct map_usages *u);

#endif
