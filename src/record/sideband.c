/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "record/ring.h"

#define RING_PAGES 64u

struct sideband {
	pid_t pid;
	int epoll;  /* the processors' events */
	bool timed; /* the records have times of CLOCK_MONOTONIC */
	uint32_t n;
	size_t length; /* bytes of one mapping */
	uint8_t *buf;
	struct {
		int fd;
		struct ring ring;
	} cpu[];
};

static int open_cpu(struct sideband *s, int cpu)
{
	int fd;
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
	attr.exclude_kernel = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	attr.use_clockid = s->timed;
	attr.clockid = s->timed ? CLOCK_MONOTONIC : 0;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.sample_id_all = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0 || errno != EINVAL || !s->timed)
		return fd;
	s->timed = false; /* Linux before 4.1 */
	return open_cpu(s, cpu);
}

int sideband_open(pid_t pid, struct sideband **out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
	struct sideband *s = calloc(1, sizeof(*s) + (size_t)cpus * sizeof(s->cpu[0]));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->pid = pid;
	s->timed = true;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->length = (RING_PAGES + 1) * (size_t)page;
	s->buf = malloc(RING_PAGES * (size_t)page);
	for (long i = 0; i < cpus && s->buf && s->epoll >= 0 && !err; i++) {
		struct epoll_event ready = {.events = EPOLLIN};
		int fd = open_cpu(s, (int)i);
		void *p;

		if (fd < 0) {
			/* ENODEV: the processor is off line. */
			err = errno == ENODEV ? 0 : -errno;
			continue;
		}
		p = mmap(NULL, s->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ready)) {
			err = -errno;
			if (p != MAP_FAILED)
				munmap(p, s->length);
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

struct map2_record { /* PERF_RECORD_MMAP2, without a build id; then the path and struct sample_id */
	struct map_record begin;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t ino, generation;
	uint32_t protection, flags;
};

struct sample_id { /* as sample_type demands */
	uint32_t pid, tid;
	uint64_t time_ns;
};

static int add_code(const struct map2_record *m, struct sideband_news *news)
{
	const char *path = (const char *)(m + 1);
	size_t room = m->begin.h.size - sizeof(*m) - sizeof(struct sample_id);
	struct sideband_code code = {.map = {.start = m->address,
					     .end = m->address + m->length,
					     .offset = m->offset,
					     .ino = m->ino,
					     .read = true,
					     .exec = true}};
	char *copy = strndup(path, room);

	memcpy(&code.time_ns, path + room + offsetof(struct sample_id, time_ns),
	       sizeof(code.time_ns));
	code.map.path = copy;
	if (copy && !vec_push(&news->code, code))
		return 0;
	free(copy);
	return -ENOMEM;
}

static void note_mapping(const struct sideband *s, const struct perf_event_header *h,
			 struct sideband_news *news)
{
	const struct map2_record *m = (const void *)h;

	news->mapped = true;
	if (!s->timed || h->type != PERF_RECORD_MMAP2 ||
	    h->size < sizeof(*m) + sizeof(struct sample_id) || !m->ino)
		return;
	if (add_code(m, news))
		news->lost++;
}

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
		note_mapping(s, h, news);
	else if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC)
		news->execed = true;
	else if (h->type == PERF_RECORD_EXIT && h->size >= sizeof(*m) + 8 &&
		 ((const uint32_t *)(m + 1))[0] == (uint32_t)s->pid)
		news->exited = true;
}

int sideband_fd(const struct sideband *s)
{
	return s->epoll;
}

static int by_time(const void *a, const void *b)
{
	const struct sideband_code *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void sideband_poll(struct sideband *s, struct sideband_news *news)
{
	size_t before = news->code.n;

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t n = ring_ready(&s->cpu[i].ring), at = 0;

		if (!n)
			continue;
		ring_copy(&s->cpu[i].ring, s->buf, n);
		while (at + sizeof(struct perf_event_header) <= n) {
			const struct perf_event_header *h = (const void *)(s->buf + at);

			if (h->size < sizeof(*h) || h->size > n - at)
				break;
			note_record(s, h, news);
			at += h->size;
		}
		ring_advance(&s->cpu[i].ring, n);
	}
	if (news->code.n > before + 1) /* each processor has a ring */
		vec_sort(&news->code, by_time);
}

void sideband_forget_code(struct sideband_news *news)
{
	vec_for_each (&news->code, c)
		free((char *)c->map.path);
	vec_free(&news->code);
}

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		munmap(s->cpu[i].ring.page, s->length);
		close(s->cpu[i].fd);
	}
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->buf);
	free(s);
}
