/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each mapping of a process holds: /proc/PID/smaps (Documentation/filesystems/proc.rst). */
#ifndef ATTACH_SMAPS_H
#define ATTACH_SMAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "lib/check.h"
#include "lib/vec.h"

/* Bytes; prot as PROT_*. */
struct map_usage {
	uint64_t start, end, rss, anonymous, swap;
	uint32_t prot;
	bool shared;
	bool dontfork; /* memory that a child does not get: madvise(2), MADV_DONTFORK */
	bool hugetlb;  /* of a pool of huge pages: what it holds is in none of the sums */
	char *path;
};
struct map_usages {
	VEC(struct map_usage) list;
};

/* Parses smaps text; mappings that hold nothing are left out, unless they are @dontfork or
 * @hugetlb. Return: 0 or -EINVAL/-ENOMEM, @u then empty. */
__must_check int map_usages_parse(FILE *text, struct map_usages *u);
/* Return: 0, -ESRCH, -EACCES, ...  The kernel walks the page tables for it: about a millisecond for
 * each GiB of small pages, in which the target's own mmap may wait. */
__must_check int map_usages_read(pid_t pid, struct map_usages *u);
void map_usages_free(struct map_usages *u);

#endif
