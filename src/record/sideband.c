/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "record/ring.h"

#define RING_PAGES 64u

struct sideband {
	pid_t pid;
	uint32_t n;
	size_t length; /* bytes of one mapping */
	uint8_t *buf;
	struct {
		int fd;
		struct ring ring;
	} cpu[];
};

static int open_cpu(int cpu)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
	attr.exclude_kernel = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.sample_id_all = 1;
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int sideband_open(pid_t pid, struct sideband **out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
	struct sideband *s = calloc(1, sizeof(*s) + (size_t)cpus * sizeof(s->cpu[0]));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->pid = pid;
	s->length = (RING_PAGES + 1) * (size_t)page;
	s->buf = malloc(RING_PAGES * (size_t)page);
	for (long i = 0; i < cpus && s->buf && !err; i++) {
		int fd = open_cpu((int)i);
		void *p;

		if (fd < 0) {
			/* ENODEV: the processor is off line. */
			err = errno == ENODEV ? 0 : -errno;
			continue;
		}
		p = mmap(NULL, s->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED) {
			err = -errno;
			close(fd);
			continue;
		}
		s->cpu[s->n].fd = fd;
		s->cpu[s->n++].ring = ring_of(p, (uint8_t *)p + page, RING_PAGES * (uint64_t)page);
	}
	if (err || !s->n || !s->buf) {
		sideband_close(s);
		return err ? err : -ENODEV;
	}
	*out = s;
	return 0;
}

struct map_record { /* PERF_RECORD_MMAP and MMAP2 begin like this (linux/perf_event.h) */
	struct perf_event_header h;
	uint32_t pid, tid;
};

static void note_record(struct sideband *s, const struct perf_event_header *h,
			struct sideband_news *news)
{
	const struct map_record *m = (const void *)h;

	if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*h) + 16) {
		news->lost += ((const uint64_t *)(h + 1))[1];
		news->mapped = true; /* the lost record can have been a mapping */
		return;
	}
	if (h->size < sizeof(*m) || m->pid != (uint32_t)s->pid)
		return;
	if (h->type == PERF_RECORD_MMAP || h->type == PERF_RECORD_MMAP2)
		news->mapped = true;
	else if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC)
		news->execed = true;
	else if (h->type == PERF_RECORD_EXIT && h->size >= sizeof(*m) + 8 &&
		 ((const uint32_t *)(m + 1))[0] == (uint32_t)s->pid)
		news->exited = true;
}

struct sideband_news sideband_poll(struct sideband *s)
{
	struct sideband_news news = {0};

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t n = ring_ready(&s->cpu[i].ring), at = 0;

		ring_copy(&s->cpu[i].ring, s->buf, n);
		while (at + sizeof(struct perf_event_header) <= n) {
			const struct perf_event_header *h = (const void *)(s->buf + at);

			if (h->size < sizeof(*h) || h->size > n - at)
				break;
			note_record(s, h, &news);
			at += h->size;
		}
		ring_advance(&s->cpu[i].ring, n);
	}
	return news;
}

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		munmap(s->cpu[i].ring.page, s->length);
		close(s->cpu[i].fd);
	}
	free(s->buf);
	free(s);
}
