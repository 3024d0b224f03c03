/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* perf_event_open(2) and linux/perf_event.h are the specification of what is done here. */
#include "record/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "attach/procfs.h"
#include "lib/deadline.h"
#include "lib/vec.h"
#include "record/ring.h"
#include "record/tracefs.h"

#define ALL_RINGS  (512ull << 20)
#define MAX_RING   (64ull << 20)
#define MIN_RING   (1ull << 20)
#define SETTLED_NS 5000000u /* a sample is in its ring that long after its time */
#define MAX_EVENTS 200000u  /* descriptors: threads x processors x probes */

struct event {
	uint64_t id; /* the kernel's */
	int fd;
	uint32_t point;
};

struct point {
	uint16_t hook;
	bool at_return;
	uint32_t stack_bytes;
	int tracepoint; /* the kernel's id */
};

struct cpu {
	int cpu, fd; /* fd: the event that owns the ring */
	struct ring ring;
	uint8_t *buf; /* what was drained, its first left bytes still to be told */
	uint64_t left;
};

/* Which event tells of a thread and a point: the first one that did. */
struct teller {
	uint64_t key, id;
};

struct probes {
	pid_t pid;
	const struct arch *arch;
	int tracefs;
	uint64_t ring_bytes; /* of each processor */
	size_t ring_length;
	VEC(struct cpu) cpus;
	VEC(struct event) events; /* ascending by id */
	VEC(struct point) points;
	VEC(pid_t) tids; /* that have events of their own */
	struct teller *teller;
	uint64_t tellers, told;
};

/* -------------------------------------------------------------------------------- opening -- */

static int perf_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void common_attr(const struct probes *p, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->inherit = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(p->ring_bytes / 8);
}

/* The ring of one processor, owned by an event that only tells of threads that end. */
static int open_cpu(struct probes *p, int cpu)
{
	struct perf_event_attr attr;
	struct cpu c = {.cpu = cpu};
	void *map = MAP_FAILED;
	int ret = 0;

	common_attr(p, &attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	attr.task = 1;
	c.fd = perf_open(&attr, p->pid, cpu);
	if (c.fd < 0)
		return c.fd == -ENODEV ? 0 : c.fd; /* off line */
	c.buf = malloc(2 * p->ring_bytes);
	if (c.buf)
		map = mmap(NULL, p->ring_length, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
	if (map == MAP_FAILED) {
		ret = c.buf ? -errno : -ENOMEM;
	} else {
		c.ring = (struct ring){map, (uint8_t *)map + (p->ring_length - p->ring_bytes),
				       p->ring_bytes};
		ret = vec_push(&p->cpus, c);
		if (!ret)
			return 0;
		munmap(map, p->ring_length);
	}
	close(c.fd);
	free(c.buf);
	return ret;
}

static int explain(int error, struct mp_err *err)
{
	if (error == -EACCES || error == -EPERM)
		return mp_fail(err, MP_EXIT_PERMISSION, error,
			       "the kernel does not permit probes: that takes CAP_PERFMON or root "
			       "(kernel.perf_event_paranoid is not enough)");
	if (error == -EOPNOTSUPP || error == -ENOTSUP || error == -EINVAL)
		return mp_fail(err, MP_EXIT_KERNEL, error,
			       "this kernel cannot give user registers and stack with a sample "
			       "(perf_event_open: %s); on MIPS before Linux 5.12 that takes the "
			       "patches in kernel-patches/",
			       strerror(-error));
	if (error == -EMFILE || error == -ENFILE)
		return mp_fail(err, MP_EXIT_FAILURE, error,
			       "out of file descriptors: the kernel way needs one for each thread, "
			       "processor and probe; raise ulimit -n");
	return mp_fail(err, MP_EXIT_FAILURE, error, "cannot open kernel probes: %s",
		       strerror(-error));
}

static uint64_t default_ring(long cpus)
{
	uint64_t ring = MAX_RING;

	while (ring > MIN_RING && ring * (uint64_t)cpus > ALL_RINGS)
		ring /= 2;
	return ring;
}

int probes_open(pid_t pid, const struct arch *arch, uint64_t ring_bytes, struct probes **out,
		struct mp_err *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
	struct probes *p = calloc(1, sizeof(*p));
	struct rlimit files;
	int ret = 0;

	if (!p)
		return explain(-ENOMEM, err);
	p->pid = pid;
	p->arch = arch;
	p->ring_bytes = ring_bytes ? ring_bytes : default_ring(cpus);
	p->ring_length = p->ring_bytes + (size_t)page;
	p->tracefs = tracefs_open();
	if (p->tracefs < 0 || !arch->perf_regs_mask) {
		ret = p->tracefs;
		probes_close(p);
		return ret == -EPERM || ret == -EACCES
			   ? explain(ret, err)
			   : mp_fail(err, MP_EXIT_KERNEL, -ENOENT,
				     "this kernel has no uprobe events (CONFIG_UPROBE_EVENTS)");
	}
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (long i = 0; i < cpus && !ret; i++)
		ret = open_cpu(p, (int)i);
	if (!ret && !p->cpus.n)
		ret = -ENODEV;
	if (ret) {
		probes_close(p);
		return explain(ret, err);
	}
	*out = p;
	return 0;
}

static int open_event(struct probes *p, struct perf_event_attr *attr, pid_t tid,
		      const struct cpu *cpu, uint32_t point)
{
	struct event e = {.point = point};
	int ret = 0;

	if (p->events.n >= MAX_EVENTS)
		return -EMFILE;
	e.fd = perf_open(attr, tid, cpu->cpu);
	if (e.fd < 0)
		return e.fd == -ESRCH ? 0 : e.fd;
	if (ioctl(e.fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) ||
	    ioctl(e.fd, PERF_EVENT_IOC_ID, &e.id))
		ret = -errno;
	if (!ret)
		ret = vec_push(&p->events, e);
	if (ret)
		close(e.fd);
	return ret;
}

static int open_point(struct probes *p, uint32_t point, pid_t tid)
{
	const struct point *pt = &p->points.at[point];
	struct perf_event_attr attr;
	int ret = 0;

	common_attr(p, &attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)pt->tracepoint;
	attr.sample_period = 1;
	attr.disabled = 1;
	attr.sample_type |= PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user = p->arch->perf_regs_mask;
	if (pt->stack_bytes) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = pt->stack_bytes;
	}
	vec_for_each (&p->cpus, cpu) {
		ret = open_event(p, &attr, tid, cpu, point);
		if (ret)
			break;
	}
	return ret;
}

static bool has_tid(const struct probes *p, pid_t tid)
{
	vec_for_each (&p->tids, t) {
		if (*t == tid)
			return true;
	}
	return false;
}

static int open_threads(struct probes *p, uint32_t first)
{
	p->tids.n = 0;
	for (bool fresh = true; fresh;) {
		struct tids now;
		int ret = proc_tasks(p->pid, &now);

		if (ret)
			return ret;
		fresh = false;
		vec_for_each (&now.list, tid) {
			if (has_tid(p, *tid))
				continue;
			fresh = true;
			ret = vec_push(&p->tids, *tid);
			for (uint32_t i = first; i < p->points.n && !ret; i++)
				ret = open_point(p, i, *tid);
			if (ret)
				break;
		}
		vec_free(&now.list);
		if (ret)
			return ret;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int probes_add(struct probes *p, const struct probe_point *point, uint32_t n, struct mp_err *err)
{
	uint32_t first = (uint32_t)p->points.n;
	size_t events = p->events.n;
	int ret = 0;

	for (uint32_t i = 0; i < n && !ret; i++) {
		struct point pt = {.hook = point[i].hook,
				   .at_return = point[i].at_return,
				   .stack_bytes = point[i].stack_bytes};

		pt.tracepoint = tracefs_add(p->tracefs, first + i, point[i].path, point[i].offset,
					    pt.at_return);
		ret = pt.tracepoint < 0 ? pt.tracepoint : vec_push(&p->points, pt);
	}
	if (!ret)
		ret = open_threads(p, first);
	if (ret)
		return explain(ret, err);
	/* The children that were inherited meanwhile are enabled with their parents. */
	for (size_t i = events; i < p->events.n; i++)
		ioctl(p->events.at[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	qsort(p->events.at, p->events.n, sizeof(p->events.at[0]), by_id);
	return 0;
}

void probes_close(struct probes *p)
{
	if (!p)
		return;
	vec_for_each (&p->events, e)
		close(e->fd);
	for (uint32_t i = 0; i < p->points.n; i++)
		tracefs_remove(p->tracefs, i);
	if (p->tracefs >= 0)
		close(p->tracefs);
	vec_for_each (&p->cpus, c) {
		munmap(c->ring.page, p->ring_length);
		close(c->fd);
		free(c->buf);
	}
	vec_free(&p->events);
	vec_free(&p->cpus);
	vec_free(&p->points);
	vec_free(&p->tids);
	free(p->teller);
	free(p);
}

/* -------------------------------------------------------------------------------- decoding -- */

struct cursor {
	const uint8_t *at, *end;
};

static uint64_t get(struct cursor *c)
{
	uint64_t v;

	if (c->end - c->at < 8) {
		c->at = c->end;
		return 0;
	}
	memcpy(&v, c->at, sizeof(v));
	c->at += sizeof(v);
	return v;
}

static const struct event *event_of(const struct probes *p, uint64_t id)
{
	struct event key = {.id = id};

	return bsearch(&key, p->events.at, p->events.n, sizeof(key), by_id);
}

static int grow_tellers(struct probes *p)
{
	uint64_t cap = p->tellers ? p->tellers * 2 : 4096;
	struct teller *more = calloc(cap, sizeof(*more));

	if (!more)
		return -ENOMEM;
	p->told = 0;
	for (uint64_t i = 0; i < p->tellers; i++) {
		uint64_t at = p->teller[i].key * 0x9e3779b97f4a7c15ull >> 20;

		if (!p->teller[i].id)
			continue;
		while (more[at & (cap - 1)].key)
			at++;
		more[at & (cap - 1)] = p->teller[i];
		p->told++;
	}
	free(p->teller);
	p->teller = more;
	p->tellers = cap;
	return 0;
}

/* Its number may be another thread's next. */
static void forget_thread(struct probes *p, uint32_t tid)
{
	for (uint64_t i = 0; i < p->tellers; i++) {
		if (p->teller[i].key && (p->teller[i].key - 1) >> 32 == tid)
			p->teller[i].id = 0;
	}
}

/* Is the thread's sample of this point told by another event already?  Events of one point differ
 * by processor; what tells is the thread that they were opened for, so ids of one processor. */
static bool is_double(struct probes *p, uint32_t tid, uint32_t point, uint32_t cpu, uint64_t id)
{
	uint64_t key = ((uint64_t)tid << 32 | (uint64_t)cpu << 20 | point) + 1, at;

	if (p->told * 2 >= p->tellers && grow_tellers(p))
		return false;
	for (at = key * 0x9e3779b97f4a7c15ull >> 20; p->teller[at & (p->tellers - 1)].key; at++) {
		struct teller *t = &p->teller[at & (p->tellers - 1)];

		if (t->key != key)
			continue;
		if (!t->id)
			t->id = id;
		return t->id != id;
	}
	p->teller[at & (p->tellers - 1)] = (struct teller){key, id};
	p->told++;
	return false;
}

static void get_regs(const struct probes *p, struct cursor *c, struct probe_sample *s)
{
	uint64_t abi = get(c), mask = p->arch->perf_regs_mask;

	for (uint32_t bit = 0; abi && bit < 64; bit++) {
		int column = p->arch->perf_column[bit];
		uint64_t value;

		if (!(mask >> bit & 1))
			continue;
		value = get(c);
		for (int i = 0; i < ARCH_ARGS; i++) {
			if (p->arch->perf_arg[i] == bit)
				s->arg[i] = value;
		}
		if (p->arch->perf_result == bit)
			s->result = value;
		if (column < 0)
			continue;
		s->regs[column] = value;
		s->valid |= 1u << column;
	}
}

/* Return: false if the record is not a sample of ours. */
static bool decode_sample(struct probes *p, uint32_t cpu, struct cursor *c, struct probe_sample *s)
{
	const struct event *e;
	const struct point *pt;
	uint64_t id = get(c), tids, size;

	e = event_of(p, id);
	tids = get(c);
	s->time_ns = get(c);
	if (!e || (pid_t)(uint32_t)tids != p->pid)
		return false;
	pt = &p->points.at[e->point];
	s->tid = (uint32_t)(tids >> 32);
	if (is_double(p, s->tid, e->point, cpu, id))
		return false;
	s->kind = pt->at_return ? PROBE_RETURN : PROBE_ENTRY;
	s->hook = pt->hook;
	get_regs(p, c, s);
	if (!pt->stack_bytes)
		return true;
	size = get(c);
	if (size > (uint64_t)(c->end - c->at))
		return false;
	s->stack = c->at;
	c->at += size;
	s->stack_bytes = size ? (uint32_t)get(c) : 0; /* what was really copied */
	if (s->stack_bytes > size)
		s->stack_bytes = (uint32_t)size;
	return true;
}

/* The time of any record: its sample_id ends with it (identifier last), samples have it third. */
static uint64_t time_of(const struct perf_event_header *h)
{
	const uint8_t *end = (const uint8_t *)h + h->size;
	uint64_t time = 0;

	if (h->type == PERF_RECORD_SAMPLE && h->size >= sizeof(*h) + 24)
		memcpy(&time, (const uint8_t *)(h + 1) + 16, sizeof(time));
	else if (h->type != PERF_RECORD_SAMPLE && h->size >= sizeof(*h) + 24)
		memcpy(&time, end - 16, sizeof(time));
	return time;
}

static bool decode(struct probes *p, const struct cpu *cpu, const struct perf_event_header *h,
		   struct probe_sample *s)
{
	struct cursor c = {(const uint8_t *)(h + 1), (const uint8_t *)h + h->size};
	uint64_t word;

	memset(s, 0, sizeof(*s));
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		return decode_sample(p, (uint32_t)cpu->cpu, &c, s);
	case PERF_RECORD_LOST:
		get(&c);
		s->kind = PROBE_LOST;
		s->lost = get(&c);
		return true;
	case PERF_RECORD_EXIT: /* pid, ppid, tid, ptid */
		word = get(&c);
		s->kind = PROBE_THREAD_EXIT;
		s->time_ns = time_of(h);
		s->tid = (uint32_t)get(&c);
		forget_thread(p, s->tid);
		return (pid_t)(uint32_t)word == p->pid;
	default:
		return false;
	}
}

/* -------------------------------------------------------------------------------- draining -- */

/* Brings what is new behind what was left. */
static void fill(struct cpu *c)
{
	uint64_t n = ring_ready(&c->ring), room = 2 * c->ring.size - c->left;

	if (n > room)
		n = room & ~7ull;
	ring_copy(&c->ring, c->buf + c->left, n);
	ring_advance(&c->ring, n);
	c->left += n;
}

/* The next record at @at, or NULL: none, or one that makes no sense. */
static const struct perf_event_header *record_at(const struct cpu *c, uint64_t at)
{
	const struct perf_event_header *h = (const void *)(c->buf + at);

	return at + sizeof(*h) <= c->left && h->size >= sizeof(*h) && h->size <= c->left - at
		   ? h
		   : NULL;
}

static void keep_rest(struct cpu *c, uint64_t from)
{
	memmove(c->buf, c->buf + from, c->left - from);
	c->left -= from;
}

uint64_t probes_drain(struct probes *p, void (*take)(void *ctx, const struct probe_sample *s),
		      void *ctx, bool last)
{
	uint64_t until = last ? UINT64_MAX : mono_ns() - SETTLED_NS;
	uint64_t *at = calloc(p->cpus.n, sizeof(*at));

	if (!at)
		return 0;
	vec_for_each (&p->cpus, c)
		fill(c);
	for (;;) {
		const struct perf_event_header *first = NULL;
		uint64_t earliest = UINT64_MAX;
		struct probe_sample s;
		size_t from = 0;

		for (size_t i = 0; i < p->cpus.n; i++) {
			const struct perf_event_header *h = record_at(&p->cpus.at[i], at[i]);
			uint64_t time = h ? time_of(h) : 0;

			if (!h || time > until || (first && time >= earliest))
				continue;
			first = h;
			earliest = time;
			from = i;
		}
		if (!first)
			break;
		if (decode(p, &p->cpus.at[from], first, &s))
			take(ctx, &s);
		at[from] += first->size;
	}
	for (size_t i = 0; i < p->cpus.n; i++)
		keep_rest(&p->cpus.at[i], at[i]);
	free(at);
	return until;
}

void probes_wait(struct probes *p, int timeout_ms)
{
	struct pollfd fds[64];
	nfds_t n = 0;

	for (size_t i = 0; i < p->cpus.n && n < 64; i++)
		fds[n++] = (struct pollfd){.fd = p->cpus.at[i].fd, .events = POLLIN};
	poll(fds, n, timeout_ms);
}
