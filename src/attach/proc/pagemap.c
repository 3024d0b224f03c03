/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "attach/track.h"

#define HERE	(1ull << 63)
#define SWAPPED (1ull << 62)
#define ENTRIES 8192 /* read at once */

long pagemap_scan(int pagemap, struct pagemap_scan_arg *arg)
{
	long n;

	do {
		n = ioctl(pagemap, _IOWR('f', 16, struct pagemap_scan_arg), arg);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Return: 0, or -errno if the kernel does not support it. */
static int scan_present(int fd, uint64_t start, uint64_t end, uint64_t *bytes)
{
	struct track_run region[64];
	struct pagemap_scan_arg arg = {.size = sizeof(arg),
				       .start = start,
				       .end = end,
				       .vec = (uint64_t)(uintptr_t)region,
				       .vec_len = 64,
				       .category_inverted = TRACK_ZERO_PAGE,
				       .category_mask = TRACK_PRESENT | TRACK_ZERO_PAGE,
				       .return_mask = TRACK_PRESENT};

	while (arg.start < end) {
		long n = pagemap_scan(fd, &arg);

		if (n < 0)
			return (int)n;
		for (long i = 0; i < n; i++)
			*bytes += region[i].end - region[i].start;
		if (arg.walk_end <= arg.start)
			break;
		arg.start = arg.walk_end;
	}
	return 0;
}

uint64_t pagemap_present(int fd, uint64_t start, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = 0, entry[ENTRIES];

	if (!scan_present(fd, start, end, &bytes))
		return bytes;
	bytes = 0;
	for (uint64_t at = start / page, last = end / page; at < last;) {
		size_t want = last - at < ENTRIES ? (size_t)(last - at) : ENTRIES;
		ssize_t got =
		    pread(fd, entry, want * sizeof(entry[0]), (off_t)(at * sizeof(entry[0])));

		if (got < (ssize_t)sizeof(entry[0]))
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(entry[0]); i++)
			bytes += entry[i] & HERE ? page : 0;
		at += (size_t)got / sizeof(entry[0]);
	}
	return bytes;
}

int pagemap_open(struct pagemap *p, pid_t pid)
{
	struct pagemap_scan_arg nothing = {.size = sizeof(nothing)};
	char path[64];
	int ret;

	memset(p, 0, sizeof(*p));
	p->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_of(pid));
	p->fd = proc_open(path);
	if (p->fd < 0) {
		ret = p->fd;
		p->fd = -1;
		return ret;
	}
	p->scans = !pagemap_scan(p->fd, &nothing);
	return p->scans ? 0 : map_usages_read(pid, &p->held);
}

void pagemap_close(struct pagemap *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	map_usages_free(&p->held);
}

static void add_run(struct pagemap *p, uint64_t start, uint64_t end, bool swapped)
{
	struct page_run *last = p->n ? &p->run[p->n - 1] : NULL;

	if (last && last->end == start && last->swapped == swapped)
		last->end = end;
	else
		p->run[p->n++] = (struct page_run){start, end, swapped};
}

/* Return: false if the kernel reported nothing. */
static bool ask_scan(struct pagemap *p, uint64_t at, uint64_t end)
{
	struct track_run region[PAGEMAP_RUNS];
	struct pagemap_scan_arg arg = {.size = sizeof(arg),
				       .start = at,
				       .end = end,
				       .vec = (uint64_t)(uintptr_t)region,
				       .vec_len = PAGEMAP_RUNS,
				       .category_anyof_mask = TRACK_PRESENT | TRACK_SWAPPED,
				       .return_mask = TRACK_PRESENT | TRACK_SWAPPED};
	long n = pagemap_scan(p->fd, &arg);

	if (n < 0 || arg.walk_end <= at)
		return false;
	for (long i = 0; i < n; i++)
		add_run(p, region[i].start, region[i].end, !(region[i].categories & TRACK_PRESENT));
	p->to = arg.walk_end < end ? arg.walk_end : end;
	return true;
}

/* The first non-empty mapping that ends after @at, or NULL. */
static const struct map_usage *held_after(const struct pagemap *p, uint64_t at)
{
	size_t lo = 0, hi = p->held.list.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (p->held.list.at[mid].end <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->held.list.n ? &p->held.list.at[lo] : NULL;
}

static bool ask_entries(struct pagemap *p, uint64_t at, uint64_t end)
{
	const struct map_usage *u = held_after(p, at);
	uint64_t entry[ENTRIES];

	p->to = end;
	if (!u || u->start >= end)
		return true;
	at = u->start > at ? u->start : at;
	end = u->end < end ? u->end : end;
	while (at < end && p->n + 1 < PAGEMAP_RUNS) {
		uint64_t left = (end - at) / p->page_size;
		size_t want = (left < ENTRIES ? (size_t)left : ENTRIES) * sizeof(entry[0]), n;
		ssize_t got =
		    pread(p->fd, entry, want, (off_t)(at / p->page_size * sizeof(entry[0])));

		if (got < (ssize_t)sizeof(entry[0]))
			return false;
		n = (size_t)got / sizeof(entry[0]);
		for (size_t i = 0; i < n && p->n + 1 < PAGEMAP_RUNS; i++, at += p->page_size) {
			if (entry[i] & (HERE | SWAPPED))
				add_run(p, at, at + p->page_size, !(entry[i] & HERE));
		}
	}
	p->to = at;
	return true;
}

static void ask_pages(struct pagemap *p, uint64_t at, uint64_t end)
{
	p->from = at;
	p->n = p->next = 0;
	if (p->fd < 0 || !(p->scans ? ask_scan(p, at, end) : ask_entries(p, at, end))) {
		p->n = 0;
		p->to = end;
		add_run(p, at, end, false);
	}
}

bool pagemap_next(struct pagemap *p, uint64_t at, uint64_t end, struct page_run *run)
{
	at &= ~(uint64_t)(p->page_size - 1);
	while (at < end) {
		if (at < p->from || at >= p->to)
			ask_pages(p, at, end);
		/* Queries normally have ascending addresses. */
		if (p->next && p->run[p->next - 1].end > at)
			p->next = 0;
		while (p->next < p->n && p->run[p->next].end <= at)
			p->next++;
		if (p->next < p->n && p->run[p->next].start < end) {
			*run = p->run[p->next];
			run->start = run->start > at ? run->start : at;
			run->end = run->end < end ? run->end : end;
			return true;
		}
		if (p->next < p->n)
			return false;
		at = p->to;
	}
	return false;
}
